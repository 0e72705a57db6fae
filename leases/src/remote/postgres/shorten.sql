-- $3 is a node id, $4 and $5 are its start and end when the change was decided, $6 and $7 the new
-- ones.
shortened as (
    update randflake_node as node
    set start = $6::text::bigint, end_exclusive = $7::text::bigint, token = null
    from session, randflake_namespace as namespace
    where
        not session.in_transaction
        and namespace.name = $1::text
        and node.namespace = namespace.id
        and node.node_id = $3::text::bigint
        and node.start = $4::text::bigint
        and node.end_exclusive = $5::text::bigint
    returning node.node_id
),
changed as (select 'shorten' as operation, exists (select from shortened) as is_done)
