-- Every statement begins with this. One statement, in its own transaction, for one round trip. $1
-- is the namespace, $2 a number that binds the answer to the statement.
--
-- `server`: which server this is, in which line of history, which changes with a promotion, with a
-- point-in-time recovery, and in a copy of the database; and whether it waits for its disk.
-- `in_transaction`: what is written inside a transaction could be rolled back after it was
-- answered. A transaction that has written has a number; one in which only these statements ran has
-- the setting, which ends with it.
with session as materialized (
    select
        before.*,
        set_config('randflake.asked', 'yes', true) as asked,
        -- A write counts only once it is on disk.
        case
            when current_setting('synchronous_commit') not in ('on', 'remote_apply')
            then set_config('synchronous_commit', 'on', true)
        end as synchronous
    from (
        select
            floor(extract(epoch from clock_timestamp()))::bigint as now,
            (select system_identifier from pg_control_system())
            || '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
            || '/' || (select oid from pg_database where datname = current_database())
            || ' ' || current_setting('fsync') as server,
            txid_current_if_assigned() is not null
            or coalesce(current_setting('randflake.asked', true), '') <> '' as in_transaction
        offset 0
    ) as before
),
state as materialized (
    select session.*, meta.value as meta
    from session left join randflake_leases.entry as meta on meta.namespace = $1::text and meta.key = 'meta'
),
