-- Runs first, and whenever the server turns out to be another one, which is then fenced, but only by
-- a right clock. ARGV[3] is the client's.
local is_wrong = false
if is_another then
  is_wrong = math.abs(now - tonumber(ARGV[3])) > read('max_skew')
  if not is_wrong then
    fence()
  end
end
local status = not noticed and 'NOT_INITIALIZED' or is_wrong and 'CLOCK_SKEW' or 'OK'
local answer = {operation, token, status, string.format('%d', now), known_as}
for i = 1, 7 do
  answer[#answer + 1] = metadata[i]
end
answer[#answer + 1] = role == 'master' and replicas or role
return {answer}
