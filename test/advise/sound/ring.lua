-- A bounded queue that uses its places again.
local size = 256
local ring, head, tail = {}, 0, 0
for i = 0, size - 1 do ring[i] = 0 end

local function push(v)
  ring[head % size] = v
  head = head + 1
end

local function pop()
  local v = ring[tail % size]
  tail = tail + 1
  return v
end

local sum = 0
for round = 1, 220000 do
  for i = 1, 100 do push(i + round) end
  for i = 1, 100 do sum = (sum + pop()) % 1000003 end
end
print(sum)
