request as (
    select
        $1::text as namespace,
        $2::text::uuid as token,
        $3::text as salt,
        $4::text as incarnation,
        $5::text::numeric as client_now,
        $6::text::bigint as ttl,
        $7::text::bigint as first_second,
        $8::text::bigint as end_of_seconds,
        $9::text::int[] as node_ids,
        $10::text::int as want,
        $11::text::bigint as used_until
),
state as materialized (
    select
        session.now,
        namespace.id,
        namespace.floor,
        namespace.renew_above,
        abs(session.now - request.client_now) <= namespace.max_skew as clocks_agree,
        -- A client whose clock is behind begins at once.
        greatest(namespace.floor, session.now - namespace.max_skew, request.first_second) as start,
        least(session.now + least(request.ttl, namespace.max_ttl), request.end_of_seconds)
        as end_exclusive,
        case
            when session.in_transaction then 'TRANSACTION'
            when namespace.salt is distinct from request.salt then 'REPLACED'
            when
                namespace.incarnation <> session.incarnation
                or request.incarnation <> session.incarnation
            then 'INCARNATION'
            when session.now < request.first_second or session.now >= request.end_of_seconds
            then 'LIFETIME'
            else 'READY'
        end as status
    from session
    cross join request
    left join randflake_namespace as namespace on namespace.name = request.namespace
),
