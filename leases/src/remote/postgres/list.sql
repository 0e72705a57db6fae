-- $3 is a node id, or empty for all. The node ids are one text with a line for each: a row for each
-- would repeat all other columns a hundred thousand times.
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
        when not metadata.exists then 'NOT_INITIALIZED'
        else 'OK'
    end as status,
    session.now::text as now,
    (metadata.incarnation is distinct from session.incarnation)::text as incarnation_changed,
    metadata.format,
    metadata.max_ttl,
    metadata.max_skew,
    metadata.max_node_id,
    metadata.layout,
    metadata.salt,
    metadata.key_check,
    metadata.floor,
    metadata.renew_above,
    coalesce(nodes.lines, '') as nodes
from session cross join metadata cross join nodes
