-- C functions that call back into Lua: gsub, sort, pcall that fails.
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
local function fail(n)
  if n % 2 == 0 then
    error("even")
  end
  return n
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
  for j = 1, 10 do
    local ok, value = pcall(fail, i + j)
    sum = sum + (ok and value or #value)
  end
end
print(sum)
