-- Building strings, and library functions that are compiled.
local function key(i)
  local a = "k" .. i
  return a
end
local function shout(s)
  return s:sub(1, 3):upper()
end
local n = 0
for i = 1, 300 do
  local k = key(i % 10)
  n = n + #k
  local u = shout(k)
  n = n + string.byte(u, 1)
  local parts = { k, u }
  n = n + #table.concat(parts, ",")
  n = n + math.floor(n / 3)
end
