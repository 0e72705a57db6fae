-- Changes a text. The answer is in the insert id: the server's clock, and a number that binds the
-- answer to this statement; 0 if nothing was written. Parameters: the text, that number, the
-- namespace, the key, the text before, meta; until when; and those of the guard.
update randflake_entry as meta
straight_join randflake_entry as entry on entry.namespace = meta.namespace
set
    entry.value = ?,
    entry.writes = entry.writes + 1 + 0 * last_insert_id(unix_timestamp() * 1048576 + ?)
where
    meta.namespace = ?
    and meta.name = 'meta'
    and entry.name = ?
    and entry.value = ?
    and meta.value = ?
    -- Checked again after the wait for the row lock: `sysdate` advances while a statement waits.
    and unix_timestamp() + timestampdiff(second, now(6), sysdate(6)) + 0 * entry.writes <= ?
