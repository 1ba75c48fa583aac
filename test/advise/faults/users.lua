-- kind: growing-memory
-- function: lookup
-- section: memory-that-only-grows
-- record: --memory
-- The heap only grows, so it is collected each time it has doubled: few
-- collections end, and most of what leaks has seen none.
local cache = {}

local function lookup(key)
  local v = cache[key]
  if not v then
    v = {key = key, rows = {}}
    for i = 1, 20 do
      v.rows[i] = key .. i -- FAULT
    end
    cache[key] = v
  end
  return v
end

local function request(n)
  local sum = 0
  for i = 1, 200 do sum = sum + #lookup("user" .. (n * 200 + i)).rows end
  return sum
end

local sum = 0
for n = 1, 270 do sum = sum + request(n) end
print(sum)
