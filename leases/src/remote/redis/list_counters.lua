-- ARGV[5] is the cursor after the page before, or empty for the first page: all other clients wait for
-- this script.
local cursor = ARGV[5] == '' and '0' or ARGV[5]
local page = redis.call('HSCAN', KEYS[1], cursor, 'MATCH', 'counter:*', 'COUNT', '100')
local next, fields, lines = page[1], page[2], {}
for i = 1, #fields, 2 do
  lines[#lines + 1] = string.sub(fields[i], #'counter:' + 1) .. ' ' .. fields[i + 1]
end
local floor = string.format('%d', read('floor'))
return {row('OK', table.concat(lines, '\n'), '', next ~= '0' and next or '', floor)}
