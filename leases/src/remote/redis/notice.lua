
-- Restarted or failed over: writes that were acknowledged may be gone.
local noticed = redis.call('HGET', KEYS[1], 'incarnation')
if noticed and noticed ~= incarnation then
  fence()
end

