-- Finds up to $6 node ids from $3 to $4 that are missing or have a text less than $5, and the least
-- text of the others.
held as materialized (
    select entry.key, entry.value
    from randflake_leases.entry as entry
    where
        entry.namespace = $1::text
        and entry.key between 'node/' || lpad($3::text, 6, '0') and 'node/' || lpad($4::text, 6, '0')
),
found as (
    select number.id, held.value
    from generate_series($3::text::int, $4::text::int) as number (id)
    left join held on held.key = 'node/' || lpad(number.id::text, 6, '0')
    where held.value is null or held.value < $5::text collate "C"
    order by number.id
    limit $6::text::int
)
select
    $2::text as nonce,
    state.now::text as now,
    state.server,
    state.in_transaction::text,
    coalesce('=' || state.meta, '') as meta,
    coalesce(
        (select json_agg(json_build_array(found.id, found.value)) from found), '[]'
    )::text as found,
    coalesce((select '=' || min(held.value) from held where held.value >= $5::text collate "C"), '') as next
from state
