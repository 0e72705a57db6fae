
-- Restarted or failed over: writes that were acknowledged may be gone, and nothing is granted before
-- that is fenced.
local noticed = redis.call('HGET', KEYS[1], 'incarnation')
local is_another = noticed and noticed ~= incarnation

