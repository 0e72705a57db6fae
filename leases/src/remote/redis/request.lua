local client_now = tonumber(ARGV[5])
local ttl, first_second, end_of_seconds = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local node_ids = {}
for node_id in string.gmatch(ARGV[9], '%d+') do
  node_ids[#node_ids + 1] = node_id
end

if now < first_second or now >= end_of_seconds then
  return {row('LIFETIME')}
end

local max_skew = read('max_skew')
-- This also refuses a request that has waited too long, as in the socket of a stopped server.
local clocks_agree = math.abs(now - client_now) <= max_skew
local end_exclusive = math.min(now + math.min(ttl, read('max_ttl')), end_of_seconds)

-- What is known of the node ids.
local known = {}
for first = 1, #node_ids, 1000 do
  local last = math.min(first + 999, #node_ids)
  local values = redis.call('HMGET', KEYS[1], unpack(node_ids, first, last))
  for i = first, last do
    known[node_ids[i]] = parse(values[i - first + 1])
  end
end

local function lease(status, node_id, start, end_exclusive)
  return row(status, '', node_id, string.format('%d', start), string.format('%d', end_exclusive))
end
