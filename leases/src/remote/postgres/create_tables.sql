-- One statement, and one at a time: of two that come at once neither fails.
do $create$
begin
    perform pg_advisory_xact_lock(hashtext('randflake'));
    -- What exists is no news: some clients print each notice.
    perform set_config('client_min_messages', 'warning', true);
    create table if not exists randflake_namespace (
        id int generated always as identity primary key,
        name text not null unique,
        incarnation text not null,
        max_ttl int not null,
        max_skew int not null,
        max_node_id int not null,
        layout text not null,
        salt text not null,
        key_check text not null,
        floor bigint not null,
        renew_above bigint not null,
        -- Version of what is kept here.
        format int not null
    );
    -- A node id without a row was never leased. No index but the key: renewals change only the
    -- end, and then write no index.
    create table if not exists randflake_node (
        namespace int not null,
        node_id int not null check (node_id between 0 and 131071),
        start bigint not null,
        end_exclusive bigint not null,
        token uuid,
        -- What the last holder says of itself.
        note text not null,
        primary key (namespace, node_id)
    ) with (fillfactor = 70);
    -- What tickets are drawn from. Where it is missing although namespaces of tickets are there,
    -- it is lost, and every counter must be fenced.
    if to_regclass(quote_ident(current_schema()) || '.randflake_counter') is null then
        create table randflake_counter (
            namespace int not null,
            name text not null,
            value text not null,
            primary key (namespace, name)
        ) with (fillfactor = 70);
        update randflake_namespace set floor = floor + 1 where layout = 'tickets';
    end if;
end
$create$
