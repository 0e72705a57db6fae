-- $5 is the name of a counter. $6 is the floor when the change was decided, or empty to read only; $7 is
-- the value then: empty if the counter was missing, else = and the value; $8 is the new value.

-- Of two that come at once, the second waits for the first and then finds another value. The same
-- value is written again, too: synchronous standbys confirm what is written.
replaced as (
    update randflake_counter as counter
    set value = $8::text
    from state
    where
        state.status = 'READY'
        and state.floor::text = $6::text
        and counter.namespace = state.id
        and counter.name = $5::text
        and '=' || counter.value = $7::text
    returning counter.value
),
made as (
    insert into randflake_counter as counter (namespace, name, value)
    select state.id, $5::text, $8::text
    from state
    where state.status = 'READY' and state.floor::text = $6::text and $7::text = ''
    on conflict (namespace, name) do nothing
    returning counter.value
),
written as (
    select replaced.value from replaced
    union all
    select made.value from made
),
found as (
    select counter.value
    from state inner join randflake_counter as counter on counter.namespace = state.id
    where counter.name = $5::text
)
select
    'swap' as operation,
    $2::text as token,
    case
        when state.status <> 'READY' then state.status
        when exists (select from written) then 'OK'
        else 'CHANGED'
    end as status,
    state.now::text as now,
    coalesce(
        '=' || coalesce((select written.value from written), (select found.value from found)), ''
    ) as detail,
    '' as node_id,
    '' as start,
    coalesce(state.floor::text, '') as end_exclusive
from state
