-- What an operator should know about this server. Changes nothing.
local info = redis.call('INFO')

local function field(name)
  return string.match(info, '\n' .. name .. ':([^\r\n]*)') or ''
end

-- Redis 7 can say what its user may do; older versions show it only when it is done.
local may_write = ''
if redis.acl_check_cmd then
  may_write = tostring(redis.acl_check_cmd('HSET', KEYS[1], 'field', 'value'))
end
return {{
  ARGV[1], field('redis_version'), field('valkey_version'),
  field('role') == 'master' and field('connected_slaves') or field('role'),
  field('aof_last_write_status'), field('rdb_last_bgsave_status'),
  field('used_memory'), field('maxmemory'), redis.call('TYPE', KEYS[1]).ok, may_write,
}}
