-- One row: which store this is.
create table store (
    store_id blob not null
) strict;

create table namespace (
    id integer primary key,
    name text not null unique,
    max_ttl integer not null,
    max_skew integer not null,
    node_ids text not null,
    layout text not null,
    salt blob not null,
    key_check blob not null,
    floor integer not null,
    renew_above integer not null
) strict;

-- A node id without a row was never leased. Rows are never deleted: an end must not be forgotten.
create table node (
    namespace integer not null,
    node_id integer not null,
    start integer not null,
    end_exclusive integer not null,
    token blob,
    -- What the last holder says about itself.
    note text not null,
    -- Changes with each write.
    version integer not null,
    primary key (namespace, node_id)
) strict, without rowid;

-- The primary key is part of it.
create index node_token on node (token) where token is not null;
