-- At first, and whenever the server turns out to be another one.
local made = redis.call('HMGET', KEYS[1], 'format', 'max_ttl', 'max_skew', 'max_node_id', 'layout',
                        'salt', 'key_check')
local status = made[1] and 'OK' or 'NOT_INITIALIZED'
return {{operation, token, status, string.format('%d', now), known_as,
         made[1] or '', made[2] or '', made[3] or '', made[4] or '', made[5] or '', made[6] or '',
         made[7] or '', role == 'master' and replicas or role}}
