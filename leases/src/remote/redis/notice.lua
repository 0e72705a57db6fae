
-- After a restart or a failover, acknowledged writes may be lost: nothing is granted before a fence.
local noticed = redis.call('HGET', KEYS[1], 'incarnation')
local is_another = noticed and noticed ~= incarnation

