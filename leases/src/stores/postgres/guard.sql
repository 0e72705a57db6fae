-- $3 is what meta must be, $4 which server it must be, $5 and $6 the first and the last second on
-- its clock; each may be empty.
guard as materialized (
    select
        not state.in_transaction
        and ($3::text = '' or state.meta = $3::text)
        and ($4::text = '' or state.server = $4::text)
        and ($5::text = '' or state.now between nullif($5::text, '')::bigint and nullif($6::text, '')::bigint)
        as is_open
    from state
),
