on duplicate key update writes = randflake_entry.writes + 0 * last_insert_id(0)
