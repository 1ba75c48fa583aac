-- kind: stitching
-- function: score
local function score(word, i)
  local first = word:match("^.") -- FAULT
  return first:byte() + i
end

local words, sum = {}, 0
for i = 1, 200 do words[i] = "w" .. i end
for round = 1, 30000 do
  for i = 1, #words do sum = sum + score(words[i], i) end
end
print(sum)
