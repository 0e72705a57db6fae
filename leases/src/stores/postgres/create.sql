-- One statement, and one at a time: of two that come at once neither fails. What exists is not made again:
-- that would take a right that is not needed.
do $create$
declare
    former text := (
        select string_agg(former.name, ', ')
        from (values ('randflake_namespace'), ('randflake_entry')) as former (name)
        where to_regclass(quote_ident(current_schema()) || '.' || former.name) is not null
    );
begin
    perform pg_advisory_xact_lock(hashtext('randflake'));
    if former is not null then
        raise exception 'the schema % has the table % of an earlier version: make a new store in another database, '
            'or drop it once every lease is over', current_schema(), former;
    end if;
    if to_regnamespace('randflake_leases') is null then
        create schema randflake_leases;
    end if;
    -- What is in it: remote/text.rs. No index but the key: a renewal changes only the value, and then
    -- writes no index.
    if to_regclass('randflake_leases.entry') is null then
        create table randflake_leases.entry (
            namespace text collate "C" not null,
            key text collate "C" not null,
            value text collate "C" not null,
            primary key (namespace, key)
        ) with (fillfactor = 70);
    end if;
end
$create$
