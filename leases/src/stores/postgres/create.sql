-- One statement, and one at a time: if two come at once, neither fails. Nothing that exists is
-- created again: that would need an otherwise unnecessary right.
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
    -- For the contents see remote/text.rs. The key is the only index: a renewal changes only the
    -- value and so writes no index.
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
