-- ARGV[3] is a node id, ARGV[4] and ARGV[5] are its start and end when the change was decided,
-- ARGV[6] and ARGV[7] the new ones.
local node = parse(redis.call('HGET', KEYS[1], ARGV[3]))
if not node or node.start ~= tonumber(ARGV[4]) or node.end_exclusive ~= tonumber(ARGV[5]) then
  return {row('CHANGED')}
end
put(ARGV[3], tonumber(ARGV[6]), tonumber(ARGV[7]), '-', node.note)
return {row('OK')}
