-- Finds up to ARGV[5] node ids from ARGV[2] to ARGV[3] that are missing or have a text less than
-- ARGV[4], and the least text of the others.
local least, left = nil, tonumber(ARGV[5])
local free = {}
for first = tonumber(ARGV[2]), tonumber(ARGV[3]), 1000 do
  local last, names = math.min(first + 999, tonumber(ARGV[3])), {}
  for node_id = first, last do
    names[#names + 1] = string.format('node/%06d', node_id)
  end
  local texts = redis.call('HMGET', KEYS[1], unpack(names))
  for i = 1, #names do
    local text = texts[i]
    if text and text >= ARGV[4] then
      least = least and least < text and least or text
    elseif left > 0 then
      left = left - 1
      free[#free + 1] = string.format('%d', first + i - 1)
      free[#free + 1] = said(text)
    end
  end
end
answer[#answer + 1] = said(least)
for i = 1, #free do
  answer[#answer + 1] = free[i]
end
return {answer}
