-- $3 is the salt of the namespace, $4 the incarnation that is known.
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
            else 'READY'
        end as status
    from session
    left join randflake_namespace as namespace on namespace.name = $1::text
),
