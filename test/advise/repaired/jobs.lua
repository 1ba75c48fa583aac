local function job(n)
  return n
end

local function work(rounds)
  local sum = 0
  for i = 1, rounds do
    local v = i % 101
    v = (v * 31 + i) % 65521
    v = (v * 37 + i) % 65519
    v = (v * 41 + i) % 65497
    v = (v * 43 + i) % 65479
    v = (v * 47 + i) % 65449
    v = (v * 53 + i) % 65447
    v = (v * 59 + i) % 65423
    v = (v * 61 + i) % 65419
    v = (v * 67 + i) % 65413
    sum = sum + job(v)
  end
  return sum
end

for i = 1, 300000 do job(i) end -- Until LuaJIT gives up.
if arg[1] then assert(misc.sysprof.start{path = arg[1], timer = "posix", interval = 0.5}) end
print(work(800000))
if arg[1] then assert(misc.sysprof.stop()) end
