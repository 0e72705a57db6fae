-- Runs first, and whenever the server turns out to be another one: then it may have lost acknowledged
-- writes, and a fence refuses new leases until all of those are over. Only a right clock may set the
-- fence: $3 is the client's clock.
fenced as (
    update randflake_namespace as namespace
    set
        incarnation = session.incarnation,
        floor = greatest(namespace.floor + 1, session.now + namespace.max_ttl + namespace.max_skew),
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
        when not metadata.exists then 'NOT_INITIALIZED'
        when
            metadata.incarnation <> session.incarnation
            and abs(session.now - $3::text::numeric) > metadata.skew
        then 'CLOCK_SKEW'
        else 'OK'
    end as status,
    session.now::text as now,
    session.incarnation,
    metadata.format,
    metadata.max_ttl,
    metadata.max_skew,
    metadata.max_node_id,
    metadata.layout,
    metadata.salt,
    metadata.key_check,
    -- Whether the server waits for its disk before it acknowledges a write.
    current_setting('fsync') as fsync
from session cross join metadata
