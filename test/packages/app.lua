-- Work for a second of CPU time, in two functions, with something allocated.
local kept = {}
local function encode(n)
  local t = {}
  for i = 1, n do
    t[#t + 1] = string.format("%d;", i)
  end
  return table.concat(t)
end
local function count(text)
  local n = 0
  for _ in text:gmatch(";") do
    n = n + 1
  end
  return n
end
local until_cpu, total = os.clock() + (tonumber((arg or {})[1]) or 1), 0
repeat
  local text = encode(2000)
  kept[#kept % 50 + 1] = text
  total = total + count(text)
until os.clock() > until_cpu
print(total % 2000)
