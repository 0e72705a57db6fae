-- Any step. $7 is a JSON list of writes, as {"key", "before", "after"}; `before` is null if the key
-- must be missing. $8 is a list of keys to read.
asked as materialized (
    select write.key, write.before, write.after
    from json_to_recordset($7::text::json) as write (key text, before text, after text)
    where (select guard.is_open from guard)
),
held as materialized ( -- locked in the order of keys, so that no two steps wait for each other
    select entry.key, entry.value
    from randflake_leases.entry as entry
    where
        entry.namespace = $1::text
        and entry.key = any(array(select asked.key from asked where asked.before is not null))
    order by entry.key
    for no key update
),
changed as (
    update randflake_leases.entry as entry
    set value = asked.after
    from held inner join asked on asked.key = held.key
    where
        entry.namespace = $1::text
        and entry.key = asked.key
        and held.value = asked.before
        -- Checked again after the wait for the locks.
        and (
            $6::text = ''
            or floor(extract(epoch from clock_timestamp())) <= nullif($6::text, '')::bigint
        )
    returning entry.key, entry.value
),
made as (
    insert into randflake_leases.entry as entry (namespace, key, value)
    select $1::text, asked.key, asked.after
    from asked
    where asked.before is null
    order by asked.key
    on conflict (namespace, key) do nothing
    returning entry.key, entry.value
),
written as (
    select changed.key, changed.value from changed
    union all
    select made.key, made.value from made
),
found as (
    select written.key, written.value, true as is_written from written
    union all
    select entry.key, coalesce(held.value, entry.value), false
    from randflake_leases.entry as entry
    left join held on held.key = entry.key
    where
        entry.namespace = $1::text
        and entry.key = any(array(select json_array_elements_text($8::text::json)))
        and entry.key not in (select written.key from written)
)
select
    $2::text as nonce,
    state.now::text as now,
    state.server,
    state.in_transaction::text,
    coalesce('=' || state.meta, '') as meta,
    coalesce(
        (select json_agg(json_build_array(found.key, found.value, found.is_written)) from found), '[]'
    )::text as found
from state
