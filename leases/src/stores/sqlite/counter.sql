-- What tickets are drawn from. Created with the first counter: files with only leases have no such
-- table.
create table if not exists counter (
    namespace integer not null,
    name text not null,
    value text not null,
    primary key (namespace, name)
) strict, without rowid;
