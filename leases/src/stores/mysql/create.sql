create table if not exists randflake_entry (
    namespace varbinary(640) not null,
    name varbinary(640) not null,
    value mediumblob not null,
    -- Changes with each write: a write that leaves a row as it was is not logged, and no replica
    -- confirms it.
    writes bigint unsigned not null,
    primary key (namespace, name)
) engine = InnoDB
