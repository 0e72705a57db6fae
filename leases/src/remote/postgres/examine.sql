-- What an operator should know of this server. Also runs on a standby, and before the tables exist:
-- what has no table has no privilege that could be missing. $3 is what is in the namespace: tickets, or
-- leases. Those of tickets are listed as leases are, so that they are read as well.
select
    'examine' as operation,
    $2::text as token,
    $1::text as namespace,
    concat(
        current_setting('server_version'),
        coalesce(', schema ' || current_schema(), ', no schema'),
        ' of database ',
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
    concat_ws(
        ', ',
        case when not has_table_privilege(found.node, 'select') then 'select on randflake_node' end,
        case
            when $3::text = 'leases' and not has_table_privilege(found.node, 'insert')
            then 'insert on randflake_node'
        end,
        case
            when $3::text = 'leases' and not has_table_privilege(found.node, 'update')
            then 'update on randflake_node'
        end,
        case
            when $3::text = 'tickets' and not has_table_privilege(found.counter, 'select')
            then 'select on randflake_counter'
        end,
        case
            when $3::text = 'tickets' and not has_table_privilege(found.counter, 'insert')
            then 'insert on randflake_counter'
        end,
        case
            when $3::text = 'tickets' and not has_table_privilege(found.counter, 'update')
            then 'update on randflake_counter'
        end,
        case
            when not has_table_privilege(found.namespace, 'select')
            then 'select on randflake_namespace'
        end,
        case
            when not has_table_privilege(found.namespace, 'update')
            then 'update on randflake_namespace'
        end,
        case
            when not has_function_privilege('pg_control_system()', 'execute')
            then 'execute on function pg_control_system'
        end
    ) as missing_privileges
from (
    select
        to_regclass('randflake_node')::oid as node,
        to_regclass('randflake_counter')::oid as counter,
        to_regclass('randflake_namespace')::oid as namespace
) as found
