-- A page of the fields that begin with ARGV[2], at the cursor ARGV[3]: all other clients wait for
-- this script.
local page = redis.call('HSCAN', KEYS[1], ARGV[3], 'MATCH', ARGV[2] .. '*', 'COUNT', '1000')
answer[#answer + 1] = page[1]
for _, field in ipairs(page[2]) do
  answer[#answer + 1] = field
end
return {answer}
