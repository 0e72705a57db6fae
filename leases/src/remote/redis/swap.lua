-- ARGV[5] is the name of a counter. ARGV[6] is the floor when the change was decided, or empty to read
-- only; ARGV[7] is the value then: empty if the counter was missing, else = and the value; ARGV[8] is
-- the new value.
local field, floor = 'counter:' .. ARGV[5], string.format('%d', read('floor'))
local value = redis.call('HGET', KEYS[1], field)
local status, found = 'CHANGED', value and '=' .. value or ''
if ARGV[6] == floor and ARGV[7] == found then
  -- The same value is written again, too: replicas confirm what this very connection has written.
  redis.call('HSET', KEYS[1], field, ARGV[8])
  status, found = 'OK', '=' .. redis.call('HGET', KEYS[1], field)
end
return {row(status, found, '', '', floor)}
