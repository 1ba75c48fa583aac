-- record: --memory --sample 65536
-- Few, long coroutines that end, and strings that are joined once.
local function numbers(n)
  return coroutine.wrap(function()
    local sum = 0
    for i = 1, n do
      for k = 1, 3000 do sum = (sum + i * k) % 65521 end
      coroutine.yield(sum)
    end
  end)
end

local lines = {}
for round = 1, 3 do
  for v in numbers(3000) do lines[#lines % 1000 + 1] = v end
end
print(#table.concat(lines, ","))
