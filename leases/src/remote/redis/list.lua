-- ARGV[3] a node id, or nothing for all of them.
local meta = redis.call('HMGET', KEYS[1], 'incarnation', 'format', 'max_ttl', 'max_skew',
                        'max_node_id', 'layout', 'salt', 'key_check', 'floor', 'renew_above')
local answer = {operation, token, meta[1] and 'OK' or 'NOT_INITIALIZED',
                string.format('%d', now), tostring(meta[1] ~= incarnation)}
for i = 2, 10 do
  answer[#answer + 1] = meta[i] or ''
end

-- As they are, in a row of their own: all other clients wait for this script.
answer[#answer + 1] = ''
if ARGV[3] == '' then
  return {answer, redis.call('HGETALL', KEYS[1])}
end
local value = redis.call('HGET', KEYS[1], ARGV[3])
return {answer, value and {ARGV[3], value} or {}}
