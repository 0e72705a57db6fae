-- What is saved of namespace $1, as text; nothing but empty texts if it is missing.
metadata as (
    select
        namespace.incarnation,
        coalesce(namespace.max_skew, 0) as skew,
        namespace.id is not null as exists,
        coalesce(namespace.format::text, '') as format,
        coalesce(namespace.max_ttl::text, '') as max_ttl,
        coalesce(namespace.max_skew::text, '') as max_skew,
        coalesce(namespace.max_node_id::text, '') as max_node_id,
        coalesce(namespace.layout, '') as layout,
        coalesce(namespace.salt, '') as salt,
        coalesce(namespace.key_check, '') as key_check,
        coalesce(namespace.floor::text, '') as floor,
        coalesce(namespace.renew_above::text, '') as renew_above
    from session left join randflake_namespace as namespace on namespace.name = $1::text
),
