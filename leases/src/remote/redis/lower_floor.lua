-- ARGV[3] the floor when it was decided to change it, ARGV[4] the new one, ARGV[5] which leases are
-- not renewed.
if is_another then
  fence() -- the operator has compared the clocks
  return {row('CHANGED')}
end
if read('floor') ~= tonumber(ARGV[3]) then
  return {row('CHANGED')}
end
redis.call('HSET', KEYS[1], 'floor', ARGV[4], 'renew_above', ARGV[5])
return {row('OK')}
