-- What tickets are drawn from. Made with the first counter: files of leases alone have none.
create table if not exists counter (
    namespace integer not null,
    name text not null,
    value text not null,
    primary key (namespace, name)
) strict, without rowid;
