-- kind: collectgarbage
-- function: handle
local cache, served = {}, 0
for i = 1, 20000 do cache[i] = {id = i} end

local function handle(id)
  local sum = cache[id % #cache + 1].id
  for i = 1, 3000 do sum = (sum * 31 + i * id) % 65521 end
  served = served + #{id, sum}
  collectgarbage() -- FAULT
  return sum
end

local sum = 0
for id = 1, 500 do sum = sum + handle(id) end
print(sum, served)
