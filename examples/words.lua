-- Counts the words of a text and prints the most frequent ones: string.gmatch,
-- tables, table.sort with a Lua callback.
local text = ([[
the vm runs the trace and the trace runs the loop
the loop runs until the guard of the trace fails
then the vm runs the loop again
]]):rep(2000)

local count, words = {}, {}
for word in text:gmatch("%a+") do
  if not count[word] then
    count[word] = 0
    words[#words + 1] = word
  end
  count[word] = count[word] + 1
end
table.sort(words, function(a, b)
  if count[a] ~= count[b] then return count[a] > count[b] end
  return a < b
end)

local expected = { "the 18000", "runs 8000", "loop 6000", "trace 6000" }
for i = 1, #expected do
  local line = words[i] .. " " .. count[words[i]]
  print(line)
  assert(line == expected[i], "expected " .. expected[i])
end
