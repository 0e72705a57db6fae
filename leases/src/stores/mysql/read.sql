    ) as value
union all
-- Parameters: a JSON list of keys, with | for each quote, and the namespace.
select asked.name, convert(entry.value using utf8mb4)
from json_table(replace(?, '|', '"'), '$[*]' columns (name varchar(640) character set utf8mb4 path '$')) as asked
straight_join randflake_entry as entry
    on entry.namespace = ?
    and entry.name = cast(asked.name as binary)
