-- What an operator should know about this server. Also runs on a standby, and before the table
-- exists: a missing table has no missing privileges. $1 is a number that binds the answer to this
-- statement.
select
    $1::text as nonce,
    concat(
        current_setting('server_version'),
        ', database ',
        current_database()
    ) as version,
    current_setting('server_version_num') as version_number,
    current_user::text as role,
    pg_is_in_recovery()::text as is_standby,
    current_setting('transaction_read_only') as is_read_only,
    current_setting('fsync') as fsync,
    current_setting('synchronous_commit') as synchronous_commit,
    current_setting('full_page_writes') as full_page_writes,
    (select count(*) from pg_stat_replication)::text as standbys,
    current_setting('synchronous_standby_names') as synchronous_standbys,
    (found.entry is not null)::text as has_table,
    concat_ws(
        ', ',
        case
            when not has_schema_privilege(to_regnamespace('randflake_leases'), 'usage') then 'usage on schema randflake_leases'
        end,
        case when not has_table_privilege(found.entry, 'select') then 'select on randflake_leases.entry' end,
        case when not has_table_privilege(found.entry, 'insert') then 'insert on randflake_leases.entry' end,
        case when not has_table_privilege(found.entry, 'update') then 'update on randflake_leases.entry' end,
        case
            when not has_function_privilege('pg_control_system()', 'execute')
            then 'execute on function pg_control_system'
        end
    ) as missing_privileges
from (
    -- From the catalogue: a user without usage of the schema may ask for nothing in it.
    select max(class.oid::bigint)::oid as entry
    from pg_catalog.pg_class as class
    inner join pg_catalog.pg_namespace as place on place.oid = class.relnamespace
    where place.nspname = 'randflake_leases' and class.relname = 'entry'
) as found
