-- $1 namespace, $2 token, $3 its salt, $4 the incarnation that is known, $5 the client's time,
-- $6 ttl, $7 and $8 first second and end of all seconds, $9 node ids, $10 of an acquire
-- how many are wanted, and of a release the first unused second; $11 of an acquire the note of
-- the holder.
state as materialized (
    select
        session.now,
        namespace.id,
        namespace.floor,
        namespace.renew_above,
        abs(session.now - $5::text::numeric) <= namespace.max_skew as clocks_agree,
        -- A client whose clock is behind can use it at once.
        greatest(namespace.floor, session.now - namespace.max_skew, $7::text::bigint) as start,
        least(session.now + least($6::text::bigint, namespace.max_ttl), $8::text::bigint)
        as end_exclusive,
        case
            when session.in_transaction then 'TRANSACTION'
            when namespace.salt is distinct from $3::text then 'REPLACED'
            when
                namespace.incarnation <> session.incarnation
                or $4::text <> session.incarnation
            then 'INCARNATION'
            when session.now < $7::text::bigint or session.now >= $8::text::bigint
            then 'LIFETIME'
            else 'READY'
        end as status
    from session
    left join randflake_namespace as namespace on namespace.name = $1::text
),
