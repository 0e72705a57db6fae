-- ARGV[3] a node id, ARGV[4] and ARGV[5] its start and end when it was decided to change it, ARGV[6]
-- and ARGV[7] the new ones.
local node = parse(redis.call('HGET', KEYS[1], ARGV[3]))
if not node or node.start ~= tonumber(ARGV[4]) or node.end_exclusive ~= tonumber(ARGV[5]) then
  return {row('CHANGED')}
end
put(ARGV[3], tonumber(ARGV[6]), tonumber(ARGV[7]), '-', node.note)
return {row('OK')}
