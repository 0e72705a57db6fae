if redis.call('HGET', KEYS[1], 'salt') ~= ARGV[3] then
  return {row('REPLACED')}
end
local floor, renew_above = fence()
return {row('OK', '', '', string.format('%d', renew_above), string.format('%d', floor))}
