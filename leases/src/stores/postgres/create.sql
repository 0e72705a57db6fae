-- One statement, and one at a time: of two that come at once neither fails.
do $create$
begin
    perform pg_advisory_xact_lock(hashtext('randflake'));
    -- What exists is no news: some clients print each notice.
    perform set_config('client_min_messages', 'warning', true);
    if to_regclass(quote_ident(current_schema()) || '.randflake_namespace') is not null then
        raise exception 'this schema has the tables of an earlier version, such as randflake_namespace: make '
            'a new store in another schema or database, or drop them once every lease is over';
    end if;
    -- What is in it: remote/text.rs. No index but the key: a renewal changes only the value, and then
    -- writes no index.
    create table if not exists randflake_entry (
        namespace text collate "C" not null,
        key text collate "C" not null,
        value text collate "C" not null,
        primary key (namespace, key)
    ) with (fillfactor = 70);
end
$create$
