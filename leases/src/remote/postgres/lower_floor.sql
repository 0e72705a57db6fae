-- $3 is the floor when the change was decided, $4 the new floor, $5 the new renew_above.
lowered as (
    update randflake_namespace as namespace
    set floor = $4::text::bigint, renew_above = $5::text::bigint
    from session
    where
        not session.in_transaction
        and namespace.name = $1::text
        and namespace.floor = $3::text::bigint
    returning namespace.id
),
changed as (select 'lower_floor' as operation, exists (select from lowered) as is_done)
