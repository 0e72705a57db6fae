-- `any` splits the node ids with immutable functions, which a cast of text to an array is not: only
-- then the planner knows their number, and hashes thousands of them.
known as materialized (
    select
        node.node_id,
        node.start,
        node.end_exclusive,
        node.token = $2::text::uuid as held,
        node.end_exclusive > (select state.now from state) as taken
    from randflake_node as node
    where
        node.namespace = (select state.id from state where state.status = 'READY')
        and node.node_id = any(string_to_array(btrim($9::text, '{}'), ',')::int[])
),
-- In the order of node ids, so that two of these never wait for each other.
granted as (
    insert into randflake_node as node (namespace, node_id, start, end_exclusive, token, note)
    select
        state.id, picked.node_id, state.start, state.end_exclusive, $2::text::uuid, $11::text
    from state
    cross join lateral (
        select candidate.node_id
        from unnest($9::text::int[]) with ordinality as candidate (node_id, place)
        where candidate.node_id not in (select known.node_id from known where known.taken)
        order by candidate.place
        limit $10::text::int
    ) as picked
    where
        state.status = 'READY'
        and state.clocks_agree
        and state.floor <= state.now
        -- A repeated request gets the same answer.
        and not exists (select from known where known.held)
    order by picked.node_id
    on conflict (namespace, node_id) do update
    set
        start = greatest(node.end_exclusive, excluded.start),
        end_exclusive = excluded.end_exclusive,
        token = excluded.token,
        note = excluded.note
    where node.end_exclusive <= (select state.now from state)
    returning node.node_id, node.start, node.end_exclusive
),
-- Written again: synchronous standbys confirm what is written. If the first one was cancelled, or
-- its connection lost, while it waited for them, it was committed without them.
repeated as (
    update randflake_node as node
    set token = node.token
    where
        node.namespace = (select state.id from state where state.status = 'READY')
        and node.node_id in (select known.node_id from known where known.held)
        and node.token = $2::text::uuid
    returning node.node_id, node.start, node.end_exclusive
),
lease as (
    select 'HELD' as status, repeated.node_id, repeated.start, repeated.end_exclusive
    from repeated
    union all
    select 'OK' as status, granted.node_id, granted.start, granted.end_exclusive
    from granted
)
select
    'acquire' as operation,
    $2::text as token,
    case
        when state.status <> 'READY' then state.status
        when lease.status is not null then lease.status
        when not state.clocks_agree then 'CLOCK_SKEW'
        when state.floor > state.now then 'QUARANTINE'
        else 'BUSY'
    end as status,
    state.now::text as now,
    case
        when state.floor > state.now then state.floor::text
        else coalesce((select min(known.end_exclusive) from known where known.taken)::text, '')
    end as detail,
    coalesce(lease.node_id::text, '') as node_id,
    coalesce(lease.start::text, '') as start,
    coalesce(lease.end_exclusive::text, '') as end_exclusive
from state left join lease on true
