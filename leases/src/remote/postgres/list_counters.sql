-- $3 is the salt of the namespace, $4 the incarnation that is known, $5 the last name of the page before,
-- or empty for the first page.
state as materialized (
    select
        session.now,
        namespace.id,
        namespace.floor,
        case
            when session.in_transaction then 'TRANSACTION'
            when namespace.salt is distinct from $3::text then 'REPLACED'
            when
                namespace.incarnation <> session.incarnation
                or $4::text <> session.incarnation
            then 'INCARNATION'
            else 'OK'
        end as status
    from session
    left join randflake_namespace as namespace on namespace.name = $1::text
),
-- In the order of the primary key, so that no page sorts those that follow it.
page as materialized (
    select
        counter.name,
        counter.value
    from randflake_counter as counter
    where
        counter.namespace = (select state.id from state where state.status = 'OK')
        and counter.name > $5::text
    order by counter.name
    limit 100
)
select
    'list_counters' as operation,
    $2::text as token,
    state.status,
    state.now::text as now,
    coalesce((select string_agg(page.name || ' ' || page.value, e'\n') from page), '') as detail,
    '' as node_id,
    coalesce((select case when count(*) = 100 then max(page.name) end from page), '') as start,
    coalesce(state.floor::text, '') as end_exclusive
from state
