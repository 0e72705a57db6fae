known as (
    select node.*
    from state
    cross join request
    inner join randflake_node as node
        on node.namespace = state.id and node.node_id = any(request.node_ids)
    where state.status = 'READY'
),
-- The same request once more: the same answer.
held as (
    select known.node_id, known.start, known.end_exclusive
    from known cross join request
    where known.token = request.token
),
taken as (
    select known.node_id, known.end_exclusive
    from known cross join state
    where known.end_exclusive > state.now
),
picked as (
    select candidate.node_id
    from state
    cross join request
    cross join unnest(request.node_ids) with ordinality as candidate (node_id, place)
    where
        state.status = 'READY'
        and state.clocks_agree
        and state.floor <= state.now
        and not exists (select from held)
        and not exists (select from taken where taken.node_id = candidate.node_id)
    order by candidate.place
    limit (select request.want from request)
),
-- In the order of node ids, so that two of these never wait for each other.
granted as (
    insert into randflake_node as node (namespace, node_id, start, end_exclusive, token)
    select state.id, picked.node_id, state.start, state.end_exclusive, request.token
    from picked cross join state cross join request
    order by picked.node_id
    on conflict (namespace, node_id) do update
    set
        start = greatest(node.end_exclusive, excluded.start),
        end_exclusive = excluded.end_exclusive,
        token = excluded.token
    where node.end_exclusive <= (select state.now from state)
    returning node.node_id, node.start, node.end_exclusive
),
lease as (
    select held.* from held
    union all
    select granted.* from granted
)
select
    'acquire' as operation,
    replace(request.token::text, '-', '') as token,
    case
        when state.status <> 'READY' then state.status
        when exists (select from held) then 'HELD'
        when lease.node_id is not null then 'OK'
        when not state.clocks_agree then 'CLOCK_SKEW'
        when state.floor > state.now then 'QUARANTINE'
        else 'BUSY'
    end as status,
    state.now::text as now,
    case
        when state.floor > state.now then state.floor::text
        else coalesce((select min(taken.end_exclusive) from taken)::text, '')
    end as detail,
    coalesce(lease.node_id::text, '') as node_id,
    coalesce(lease.start::text, '') as start,
    coalesce(lease.end_exclusive::text, '') as end_exclusive
from state cross join request left join lease on true
order by lease.node_id
