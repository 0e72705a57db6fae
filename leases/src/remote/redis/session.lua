-- Every script begins with this. KEYS[1] is all there is of a namespace, in one hash, so that
-- nothing of it can be lost alone: the fields of `create.lua`, and for each node id that was ever
-- leased a field 'start end_exclusive token note'; '-' for a token that was given back.
local operation, token = ARGV[1], ARGV[2]
local now = tonumber(redis.call('TIME')[1])
local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')

-- What is answered: rows of text.
local function row(status, detail, node_id, start, end_exclusive)
  return {operation, token, status, string.format('%d', now), tostring(detail or ''),
          tostring(node_id or ''), tostring(start or ''), tostring(end_exclusive or '')}
end

local function read(field)
  return tonumber(redis.call('HGET', KEYS[1], field))
end

-- The store may have forgotten leases. Neither number ever falls: the clock may have been set back
-- since the last fence.
local function fence()
  local floor = math.max(read('floor'), now + read('max_ttl') + read('max_skew'))
  local renew_above = math.max(read('renew_above'), now + read('max_skew'))
  redis.call('HSET', KEYS[1], 'incarnation', run_id,
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
