-- At first, and whenever the server turns out to be another one: then what it had acknowledged may
-- be gone, and a fence keeps everybody out until that is over. It is set only by a clock that is right:
-- $3 is the client's.
fenced as (
    update randflake_namespace as namespace
    set
        incarnation = session.incarnation,
        floor = greatest(namespace.floor, session.now + namespace.max_ttl + namespace.max_skew),
        renew_above = greatest(namespace.renew_above, session.now + namespace.max_skew)
    from session
    where
        namespace.name = $1::text
        and namespace.incarnation <> session.incarnation
        and abs(session.now - $3::text::numeric) <= namespace.max_skew
        and not session.in_transaction
    returning namespace.id
)
select
    'check' as operation,
    $2::text as token,
    case
        when session.in_transaction then 'TRANSACTION'
        when namespace.id is null then 'NOT_INITIALIZED'
        when
            namespace.incarnation <> session.incarnation
            and abs(session.now - $3::text::numeric) > namespace.max_skew
        then 'CLOCK_SKEW'
        else 'OK'
    end as status,
    session.now::text as now,
    session.incarnation,
    coalesce(namespace.format::text, '') as format,
    coalesce(namespace.max_ttl::text, '') as max_ttl,
    coalesce(namespace.max_skew::text, '') as max_skew,
    coalesce(namespace.max_node_id::text, '') as max_node_id,
    coalesce(namespace.layout, '') as layout,
    coalesce(namespace.salt, '') as salt,
    coalesce(namespace.key_check, '') as key_check,
    -- Whether what it acknowledges is on a disk.
    current_setting('fsync') as fsync
from session left join randflake_namespace as namespace on namespace.name = $1::text
