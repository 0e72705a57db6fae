if not incarnation then
  local max_ttl, max_skew = tonumber(ARGV[3]), tonumber(ARGV[4])
  local floor, renew_above = 0, 0
  if ARGV[9] == 'true' then
    floor, renew_above = now + max_ttl + max_skew, now + max_skew
  end
  redis.call('HSET', KEYS[1], 'incarnation', run_id, 'max_ttl', ARGV[3], 'max_skew', ARGV[4],
             'max_node_id', ARGV[5], 'layout', ARGV[6], 'salt', ARGV[7], 'key_check', ARGV[8],
             'floor', string.format('%d', floor), 'renew_above', string.format('%d', renew_above),
             'format', ARGV[10])
end
return {row('OK')}
