-- ARGV[3] a node id, or nothing for all of them. They come as one text, a line for each.
local meta = redis.call('HMGET', KEYS[1], 'incarnation', 'format', 'max_ttl', 'max_skew',
                        'max_node_id', 'layout', 'salt', 'key_check', 'floor', 'renew_above')
local answer = {operation, token, meta[1] and 'OK' or 'NOT_INITIALIZED',
                string.format('%d', now), tostring(meta[1] ~= run_id)}
for i = 2, 10 do
  answer[#answer + 1] = meta[i] or ''
end

local found, lines = nil, {}
if ARGV[3] ~= '' then
  found = {ARGV[3], redis.call('HGET', KEYS[1], ARGV[3])}
else
  found = redis.call('HGETALL', KEYS[1])
end
for i = 1, #found, 2 do
  local node = string.match(found[i], '^%d+$') and parse(found[i + 1])
  if node then
    lines[#lines + 1] = string.format('%s %d %d %s %s', found[i], node.start, node.end_exclusive,
                                      tostring(node.token ~= '-'), node.note)
  end
end
answer[#answer + 1] = table.concat(lines, '\n')
return {answer}
