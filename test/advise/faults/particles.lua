-- kind: gc-pressure
-- function: move
-- record: --memory --sample 65536
local ffi = require "ffi"
ffi.cdef "typedef struct { double x, y, speed; } particle;"
local particle = ffi.typeof "particle"

local function move(all, i, dt)
  local p = all[i]
  all[i] = particle(p.x + p.speed * dt, p.y - dt, p.speed) -- FAULT
end

local all = {}
for i = 1, 20000 do all[i] = particle(i, -i, i % 7) end
for frame = 1, 600 do
  for i = 1, #all do move(all, i, 0.5) end
end
local sum = 0
for i = 1, #all do sum = sum + all[i].x + all[i].y end
print(sum)
