-- $5 is the last name of the page before, or empty for the first page.

-- In the order of the primary key, so that no page sorts those that follow it.
page as materialized (
    select
        counter.name,
        counter.value
    from randflake_counter as counter
    where
        counter.namespace = (select state.id from state where state.status = 'READY')
        and counter.name > $5::text
    order by counter.name
    limit 100
)
select
    'list_counters' as operation,
    $2::text as token,
    case state.status when 'READY' then 'OK' else state.status end as status,
    state.now::text as now,
    coalesce((select string_agg(page.name || ' ' || page.value, e'\n') from page), '') as detail,
    '' as node_id,
    coalesce((select case when count(*) = 100 then max(page.name) end from page), '') as start,
    coalesce(state.floor::text, '') as end_exclusive
from state
