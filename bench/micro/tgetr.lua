-- Micro-benchmark: TGETR, an instruction that only LuaJIT's own bytecode contains
-- (table.remove, table.foreachi).
local size = tonumber(arg[1]) or 10
local t = { 1, 2, 3, 4, 5 }
local sum = 0
local function add(_, v)
  sum = sum + v
end
for i = 1, size * 2000 do
  t[#t + 1] = i % 10
  sum = sum + table.remove(t)
  table.foreachi(t, add)
end
print(sum)
