-- Every script begins with this. KEYS[1] is one hash with all texts of a namespace, so that it
-- cannot be lost in part; remote/text.rs says what they are. ARGV[1] is a number that binds the
-- answer to the script.
local now = tonumber(redis.call('TIME')[1])
local replication = redis.call('INFO', 'replication')
local role = string.match(replication, 'role:(%a+)')
local replicas = string.match(replication, 'connected_slaves:(%d+)')

-- Which server, in which line of its history: the first changes at each start, the second at each
-- promotion, even of a server that was the master before. And what a client must know: it checks a
-- replica again, and a master that gets its first replica.
local server = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') .. '/' ..
               string.match(replication, 'master_replid:(%x+)') .. ' ' .. role ..
               (replicas == '0' and '' or ' with replicas')

local function said(value)
  return value and '=' .. value or ''
end

local meta = redis.call('HGET', KEYS[1], 'meta')
if not meta and redis.call('HGET', KEYS[1], 'salt') then
  meta = '1' -- an earlier format had a field for each part of it
end
local answer = {ARGV[1], string.format('%d', now), server, said(meta)}
