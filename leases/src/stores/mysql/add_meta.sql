-- Adds meta. Parameters: the namespace, the text, the number, and those of the guard.
insert into randflake_entry (namespace, name, value, writes)
select ?, 'meta', ?, 0 * last_insert_id(unix_timestamp() * 1048576 + ?)
from (select 1 as one) as always
where
    true
