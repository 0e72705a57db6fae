-- ARGV[3] is the floor when the change was decided, ARGV[4] the new floor, ARGV[5] renew_above.
if is_another then
  fence() -- the operator has compared the clocks
  return {row('CHANGED')}
end
if read('floor') ~= tonumber(ARGV[3]) then
  return {row('CHANGED')}
end
redis.call('HSET', KEYS[1], 'floor', ARGV[4], 'renew_above', ARGV[5])
return {row('OK')}
