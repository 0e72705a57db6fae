-- Rows are never deleted: an end must not be lost.
released as (
    update randflake_node as node
    set
        end_exclusive = least(greatest($10::text::bigint, node.start), node.end_exclusive),
        token = null
    from state
    where
        state.status = 'READY'
        and node.namespace = state.id
        and node.node_id = any(string_to_array(btrim($9::text, '{}'), ',')::int[])
        and node.token = $2::text::uuid
    returning node.node_id
)
select
    'release' as operation,
    $2::text as token,
    case when state.status <> 'READY' then state.status else 'OK' end as status,
    state.now::text as now,
    (select count(*) from released)::text as detail,
    '' as node_id,
    '' as start,
    '' as end_exclusive
from state
