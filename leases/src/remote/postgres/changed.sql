-- What a change that is only made to what it was decided on ends with.
select
    changed.operation,
    $2::text as token,
    case
        when session.in_transaction then 'TRANSACTION'
        when changed.is_done then 'OK'
        else 'CHANGED'
    end as status,
    session.now::text as now,
    '' as detail,
    '' as node_id,
    '' as start,
    '' as end_exclusive
from session cross join changed
