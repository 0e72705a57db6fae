-- $3 a node id, or nothing for all of them. They come as one text, a line for each: a row for each
-- would repeat all the rest a hundred thousand times.
nodes as (
    select
        string_agg(
            node.node_id || ' ' || node.start || ' ' || node.end_exclusive || ' '
            || (node.token is not null)::text || ' ' || node.note,
            e'\n'
        ) as lines
    from randflake_node as node
    where
        node.namespace
        = (select namespace.id from randflake_namespace as namespace where namespace.name = $1::text)
        and ($3::text = '' or node.node_id = nullif($3::text, '')::bigint)
)
select
    'list' as operation,
    $2::text as token,
    case
        when session.in_transaction then 'TRANSACTION'
        when namespace.id is null then 'NOT_INITIALIZED'
        else 'OK'
    end as status,
    session.now::text as now,
    (namespace.incarnation is distinct from session.incarnation)::text as incarnation_changed,
    coalesce(namespace.format::text, '') as format,
    coalesce(namespace.max_ttl::text, '') as max_ttl,
    coalesce(namespace.max_skew::text, '') as max_skew,
    coalesce(namespace.max_node_id::text, '') as max_node_id,
    coalesce(namespace.layout, '') as layout,
    coalesce(namespace.salt, '') as salt,
    coalesce(namespace.key_check, '') as key_check,
    coalesce(namespace.floor::text, '') as floor,
    coalesce(namespace.renew_above::text, '') as renew_above,
    coalesce(nodes.lines, '') as nodes
from session
cross join nodes
left join randflake_namespace as namespace on namespace.name = $1::text
