-- C functions that call back into Lua: gsub, sort.
local size = tonumber(arg[1]) or 10

local text = ("the quick brown fox jumps over the lazy dog "):rep(5)
local sum, seed = 0, 1
local function word(w)
  sum = (sum + #w) % 1000003
  return w:upper()
end
local function by_key(a, b)
  return a.key < b.key
end
for i = 1, size * 8 do
  local out = text:gsub("%a+", word)
  local list = {}
  for j = 1, 60 do
    seed = (seed * 16807) % 2147483647
    list[j] = { key = seed % 1009 }
  end
  table.sort(list, by_key)
  sum = sum + list[1].key + list[60].key + #out
end
print(sum)
