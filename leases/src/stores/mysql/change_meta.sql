-- Changes meta. Parameters: the text, the number, the namespace, the text before, and those of the guard.
update randflake_entry as meta
set
    meta.value = ?,
    meta.writes = meta.writes + 1 + 0 * last_insert_id(unix_timestamp() * 1048576 + ?)
where
    meta.namespace = ?
    and meta.name = 'meta'
    and meta.value = ?
