-- ARGV[3] is a node id, or empty for all.
local answer = {operation, token, noticed and 'OK' or 'NOT_INITIALIZED',
                string.format('%d', now), tostring(noticed ~= incarnation)}
for i = 1, 9 do
  answer[#answer + 1] = metadata[i]
end

-- Node ids as they are, in a row of their own: all other clients wait for this script.
answer[#answer + 1] = ''
if ARGV[3] == '' then
  return {answer, redis.call('HGETALL', KEYS[1])}
end
local value = redis.call('HGET', KEYS[1], ARGV[3])
return {answer, value and {ARGV[3], value} or {}}
