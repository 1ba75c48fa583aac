-- Micro-benchmark: an error that pcall catches.
local size = tonumber(arg[1]) or 10
local sum = 0
local function fail(n)
  if n % 2 == 0 then
    error("even")
  end
  return n
end
for i = 1, size * 300 do
  local ok, value = pcall(fail, i)
  sum = sum + (ok and value or #value)
end
print(sum)
