-- A step for one key that exists, such as a renewal: cheap to plan. $7 is the key, $8 the text
-- before, $9 the new one.
held as materialized ( -- waits for the lock of the row, and has its newest text
    select entry.value
    from randflake_leases.entry as entry
    where entry.namespace = $1::text and entry.key = $7::text and (select guard.is_open from guard)
    for no key update
),
changed as (
    update randflake_leases.entry as entry
    set value = $9::text
    from held
    where
        entry.namespace = $1::text
        and entry.key = $7::text
        and held.value = $8::text
        -- Checked again after the wait for the lock.
        and (
            $6::text = ''
            or floor(extract(epoch from clock_timestamp())) <= nullif($6::text, '')::bigint
        )
    returning entry.value
),
found as (
    select entry.value
    from randflake_leases.entry as entry
    where entry.namespace = $1::text and entry.key = $7::text
)
select
    $2::text as nonce,
    state.now::text as now,
    state.server,
    state.in_transaction::text,
    coalesce('=' || state.meta, '') as meta,
    json_build_array(json_build_array(
        $7::text,
        coalesce((select changed.value from changed), (select held.value from held), (select found.value from found)),
        exists (select from changed)
    ))::text as found
from state
