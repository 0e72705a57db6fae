-- Neither number ever falls: the clock may have been set back since the last fence. And no two fences
-- leave the same floor, by which counters recognise that the namespace was fenced.
fenced as (
    update randflake_namespace as namespace
    set
        incarnation = session.incarnation,
        floor = greatest(namespace.floor + 1, session.now + namespace.max_ttl + namespace.max_skew),
        renew_above = greatest(namespace.renew_above, session.now + namespace.max_skew)
    from session
    where
        namespace.name = $1::text
        and namespace.salt = $3::text
        and not session.in_transaction
    returning namespace.floor, namespace.renew_above
)
select
    'fence' as operation,
    $2::text as token,
    case
        when session.in_transaction then 'TRANSACTION'
        when fenced.floor is null then 'REPLACED'
        else 'OK'
    end as status,
    session.now::text as now,
    '' as detail,
    '' as node_id,
    coalesce(fenced.renew_above::text, '') as start,
    coalesce(fenced.floor::text, '') as end_exclusive
from session left join fenced on true
