    ) as value
union all
-- Parameters: the namespace, twice; after which key, and before which.
(
    select convert(name using utf8mb4), convert(value using utf8mb4)
    from randflake_entry where namespace = ? and name = 'meta'
)
union all
(
    select convert(name using utf8mb4), convert(value using utf8mb4)
    from randflake_entry where namespace = ? and name > ? and name < ?
    order by name
    limit 10000
)
