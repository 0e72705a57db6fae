-- A step that writes nothing and needs no right to write. $3 is a JSON list of keys to read.
found as (
    select entry.key, entry.value
    from randflake_leases.entry as entry
    where
        entry.namespace = $1::text
        and entry.key = any(array(select json_array_elements_text($3::text::json)))
)
select
    $2::text as nonce,
    state.now::text as now,
    state.server,
    state.in_transaction::text,
    coalesce('=' || state.meta, '') as meta,
    coalesce(
        (select json_agg(json_build_array(found.key, found.value, false)) from found), '[]'
    )::text as found
from state
