    ) as value
union all
-- Parameters: the namespace; a text, the namespace, from which key to which; and these four again.
(
    select convert(name using utf8mb4), convert(value using utf8mb4)
    from randflake_entry where namespace = ? and name = 'meta'
)
union all
-- An empty text for each that is not less than that one,
(
    select convert(name using utf8mb4), if(value < ?, convert(value using utf8mb4), '')
    from randflake_entry where namespace = ? and name between ? and ?
)
union all
-- and the least of them.
(
    select '', convert(min(value) using utf8mb4)
    from randflake_entry where value >= ? and namespace = ? and name between ? and ?
)
