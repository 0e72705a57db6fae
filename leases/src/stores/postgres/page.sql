-- A page of at most $5 keys that begin with $3, after the key $4.
found as (
    select entry.key, entry.value
    from randflake_leases.entry as entry
    where
        entry.namespace = $1::text
        and entry.key > $4::text
        and starts_with(entry.key, $3::text)
    order by entry.key
    limit $5::text::int
)
select
    $2::text as nonce,
    state.now::text as now,
    state.server,
    state.in_transaction::text,
    coalesce('=' || state.meta, '') as meta,
    coalesce(
        (select json_agg(json_build_array(found.key, found.value) order by found.key) from found), '[]'
    )::text as found
from state
