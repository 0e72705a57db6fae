
-- Restarted or failed over: writes that were acknowledged may be gone.
local incarnation = redis.call('HGET', KEYS[1], 'incarnation')
if incarnation and incarnation ~= run_id then
  fence()
end

