-- ARGV[2] is what meta must be, ARGV[3] which server it must be, ARGV[4] and ARGV[5] the first and
-- the last second on its clock; each may be empty. ARGV[6] is how many texts to write; for each
-- follow the key, the text before, and the new one, encoded as `said` reads them. Then the keys to
-- read.
local is_open = (ARGV[2] == '' or meta == ARGV[2]) and (ARGV[3] == '' or server == ARGV[3]) and
                (ARGV[4] == '' or (tonumber(ARGV[4]) <= now and now <= tonumber(ARGV[5])))
local first_read = 7 + 3 * tonumber(ARGV[6])
for i = 7, first_read - 1, 3 do
  local text = said(redis.call('HGET', KEYS[1], ARGV[i]))
  local is_written = is_open and text == ARGV[i + 1]
  if is_written then
    text = ARGV[i + 2]
    redis.call('HSET', KEYS[1], ARGV[i], string.sub(text, 2))
  end
  answer[#answer + 1] = is_written and 'written' or ''
  answer[#answer + 1] = text
end
for i = first_read, #ARGV do
  answer[#answer + 1] = said(redis.call('HGET', KEYS[1], ARGV[i]))
end
return {answer}
