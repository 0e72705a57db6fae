-- At first, and whenever the server turns out to be another one: then it is fenced, but only by a clock
-- that is right. ARGV[3] is the client's.
local is_wrong = false
if is_another then
  is_wrong = math.abs(now - tonumber(ARGV[3])) > read('max_skew')
  if not is_wrong then
    fence()
  end
end
local made = redis.call('HMGET', KEYS[1], 'format', 'max_ttl', 'max_skew', 'max_node_id', 'layout',
                        'salt', 'key_check')
local status = not made[1] and 'NOT_INITIALIZED' or is_wrong and 'CLOCK_SKEW' or 'OK'
return {{operation, token, status, string.format('%d', now), known_as,
         made[1] or '', made[2] or '', made[3] or '', made[4] or '', made[5] or '', made[6] or '',
         made[7] or '', role == 'master' and replicas or role}}
