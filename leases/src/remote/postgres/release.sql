-- Rows are never deleted: an end must not be forgotten.
released as (
    update randflake_node as node
    set
        end_exclusive = least(greatest(request.used_until, node.start), node.end_exclusive),
        token = null
    from state cross join request
    where
        state.status = 'READY'
        and node.namespace = state.id
        and node.node_id = any(request.node_ids)
        and node.token = request.token
    returning node.node_id
)
select
    'release' as operation,
    replace(request.token::text, '-', '') as token,
    case when state.status <> 'READY' then state.status else 'OK' end as status,
    state.now::text as now,
    (select count(*) from released)::text as detail,
    '' as node_id,
    '' as start,
    '' as end_exclusive
from state cross join request
