-- Fields are never deleted: an end must not be lost.
local used_until, count = tonumber(ARGV[10]), 0
for _, node_id in ipairs(node_ids) do
  local held = known[node_id]
  if held and held.token == token then
    local end_exclusive = math.min(math.max(used_until, held.start), held.end_exclusive)
    put(node_id, held.start, end_exclusive, '-', held.note)
    count = count + 1
  end
end
return {row('OK', count)}
