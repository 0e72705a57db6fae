-- Every script begins with this. KEYS[1] is one hash with everything of a namespace, so that no
-- part of it can be lost alone: the fields of `create.lua`, and for each node id that was ever
-- leased a field 'start end_exclusive token note'; '-' for a released token. In a namespace of
-- tickets: for each counter a field 'counter:' and its name.
local operation, token = ARGV[1], ARGV[2]
local now = tonumber(redis.call('TIME')[1])
local replication = redis.call('INFO', 'replication')

-- Which server, in which line of its history: the first is new at each start, the second at each
-- promotion, also of a server that was the master before.
local incarnation = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') .. '/' ..
                    string.match(replication, 'master_replid:(%x+)')

-- What a client must know: it checks a replica again, and a master with its first replica.
local role = string.match(replication, 'role:(%a+)')
local replicas = string.match(replication, 'connected_slaves:(%d+)')
local known_as = incarnation .. ' ' .. role .. (replicas == '0' and '' or ' with replicas')

-- For so many seconds after a promotion, the old master may still grant: rows/settings.rs says why.
local last_grant = 12

-- An answer: rows of text.
local function row(status, detail, node_id, start, end_exclusive)
  return {operation, token, status, string.format('%d', now), tostring(detail or ''),
          tostring(node_id or ''), tostring(start or ''), tostring(end_exclusive or '')}
end

local function read(field)
  return tonumber(redis.call('HGET', KEYS[1], field))
end

-- The store may have lost leases. Neither number ever falls: the clock may have been set back since
-- the last fence. And no two fences leave the same floor, by which counters recognise that the
-- namespace was fenced.
local function fence()
  local last = now + read('max_skew') + last_grant
  local floor = math.max(read('floor') + 1, last + read('max_ttl'))
  local renew_above = math.max(read('renew_above'), last)
  redis.call('HSET', KEYS[1], 'incarnation', incarnation,
             'floor', string.format('%d', floor), 'renew_above', string.format('%d', renew_above))
  return floor, renew_above
end

-- What is known of a node id; nothing of one that was never leased.
local function parse(value)
  if value then
    local s, e, t, n = string.match(value, '^(%d+) (%d+) (%S+) ?(.*)$')
    return {start = tonumber(s), end_exclusive = tonumber(e), token = t, note = n}
  end
end

local function put(node_id, start, end_exclusive, holder, note)
  local value = string.format('%d %d %s %s', start, end_exclusive, holder, note)
  redis.call('HSET', KEYS[1], node_id, value)
end
