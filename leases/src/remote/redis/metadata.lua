-- What is saved of the namespace; empty texts if it is missing.
local metadata = redis.call('HMGET', KEYS[1], 'format', 'max_ttl', 'max_skew', 'max_node_id',
                            'layout', 'salt', 'key_check', 'floor', 'renew_above')
for i = 1, 9 do
  metadata[i] = metadata[i] or ''
end

