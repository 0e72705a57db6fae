local want, rows = tonumber(ARGV[10]), {}
for _, node_id in ipairs(node_ids) do
  local last = known[node_id]
  if last and last.token == token then -- the same request once more: the same answer
    -- Written again: replicas confirm what this very connection has written.
    put(node_id, last.start, last.end_exclusive, token, last.note)
    rows[#rows + 1] = lease('HELD', node_id, last.start, last.end_exclusive)
  end
end
if #rows > 0 then
  return rows
end
if not clocks_agree then
  return {row('CLOCK_SKEW')}
end
local floor, free_at = read('floor'), nil
if floor > now then
  return {row('QUARANTINE', string.format('%d', floor))}
end
for _, node_id in ipairs(node_ids) do
  if #rows == want then
    break
  end
  local last = known[node_id] and known[node_id].end_exclusive or 0
  if last <= now then
    -- A client whose clock is behind can use it at once.
    local start = math.max(last, floor, now - max_skew, first_second)
    put(node_id, start, end_exclusive, token, ARGV[11])
    rows[#rows + 1] = lease('OK', node_id, start, end_exclusive)
  else
    free_at = math.min(free_at or last, last)
  end
end
if #rows > 0 then
  return rows
end
return {row('BUSY', free_at and string.format('%d', free_at))}
