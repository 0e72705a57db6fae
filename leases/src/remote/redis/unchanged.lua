-- ARGV[3] is the salt of the namespace, ARGV[4] what is known of the server.
if redis.call('HGET', KEYS[1], 'salt') ~= ARGV[3] then
  return {row('REPLACED')}
end
if is_another or ARGV[4] ~= known_as then
  return {row('INCARNATION')}
end
