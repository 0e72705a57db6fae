extended as (
    update randflake_node as node
    set end_exclusive = greatest(node.end_exclusive, state.end_exclusive)
    from state
    where
        state.status = 'READY'
        and state.clocks_agree
        and node.namespace = state.id
        and node.node_id = any(string_to_array(btrim($9::text, '{}'), ',')::int[])
        and node.token = $2::text::uuid
        and node.end_exclusive > state.renew_above
    returning node.node_id, node.start, node.end_exclusive
)
select
    'renew' as operation,
    $2::text as token,
    case
        when state.status <> 'READY' then state.status
        when extended.node_id is not null then 'OK'
        when not state.clocks_agree then 'CLOCK_SKEW'
        else 'LOST'
    end as status,
    state.now::text as now,
    '' as detail,
    coalesce(extended.node_id::text, '') as node_id,
    coalesce(extended.start::text, '') as start,
    coalesce(extended.end_exclusive::text, '') as end_exclusive
from state left join extended on true
