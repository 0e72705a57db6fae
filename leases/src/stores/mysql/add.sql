-- Adds a text under a new key. Answers as change.sql does. Parameters: the key, the text, the number, the
-- namespace, meta, and those of the guard.
insert into randflake_entry (namespace, name, value, writes)
select meta.namespace, ?, ?, 0 * last_insert_id(unix_timestamp() * 1048576 + ?)
from randflake_entry as meta
where
    meta.namespace = ?
    and meta.name = 'meta'
    and meta.value = ?
