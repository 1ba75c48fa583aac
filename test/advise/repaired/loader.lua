local cache = {}

local function run(source, n)
  local f = cache[source] or load(source)
  cache[source] = f
  return (f(n))
end

local sum = 0
for round = 1, 12000 do
  sum = sum + run("local n = ... local s = 0 for i = 1, 100 do s = s + i * n end return s + " ..
                  round % 20, round)
end
print(sum)
