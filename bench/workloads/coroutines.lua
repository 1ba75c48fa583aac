-- Coroutine switching: generators, a ring that passes a value on, and
-- short-lived coroutines.
local size = tonumber(arg[1]) or 10
local wrap, yield = coroutine.wrap, coroutine.yield
local resume = coroutine.resume

local function generate(n)
  return wrap(function()
    for i = 1, n do
      yield(i)
    end
  end)
end

local ring = {}
for i = 1, 10 do
  ring[i] = coroutine.create(function(v)
    while true do
      v = yield(v + i)
    end
  end)
end

local sum = 0
for _ = 1, size * 10 do
  for v in generate(100) do
    sum = sum + v
  end
  local v = 0
  for _ = 1, 10 do
    for i = 1, #ring do
      local _, out = resume(ring[i], v)
      v = out % 1009
    end
  end
  sum = (sum + v) % 1000003
end
print(sum)
