if not clocks_agree then
  return {row('CLOCK_SKEW')}
end
local rows, renew_above = {}, read('renew_above')
for _, node_id in ipairs(node_ids) do
  local held = known[node_id]
  if held and held.token == token and held.end_exclusive > renew_above then
    local raised = math.max(held.end_exclusive, end_exclusive)
    put(node_id, held.start, raised, token, held.note)
    rows[#rows + 1] = lease('OK', node_id, held.start, raised)
  end
end
if #rows > 0 then
  return rows
end
return {row('LOST')}
