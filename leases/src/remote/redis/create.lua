if not noticed then
  redis.call('HSET', KEYS[1], 'incarnation', incarnation, 'max_ttl', ARGV[3], 'max_skew', ARGV[4],
             'max_node_id', ARGV[5], 'layout', ARGV[6], 'salt', ARGV[7], 'key_check', ARGV[8],
             'floor', '0', 'renew_above', '0', 'format', ARGV[10])
  if ARGV[9] == 'true' then
    fence()
  end
end
return {row('OK')}
