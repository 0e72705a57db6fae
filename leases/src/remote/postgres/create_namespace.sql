made as (
    insert into randflake_namespace (
        name, incarnation, max_ttl, max_skew, max_node_id, layout, salt, key_check,
        floor, renew_above, format
    )
    select
        $1::text,
        session.incarnation,
        $3::text::int,
        $4::text::int,
        $5::text::int,
        $6::text,
        $7::text,
        $8::text,
        case
            when $9::text::boolean then session.now + $3::text::bigint + $4::text::bigint else 0
        end,
        case when $9::text::boolean then session.now + $4::text::bigint else 0 end,
        $10::text::int
    from session
    where not session.in_transaction
    on conflict (name) do nothing
    returning id
)
select
    'create' as operation,
    $2::text as token,
    case when session.in_transaction then 'TRANSACTION' else 'OK' end as status,
    session.now::text as now,
    (select count(*) from made)::text as detail,
    '' as node_id,
    '' as start,
    '' as end_exclusive
from session
