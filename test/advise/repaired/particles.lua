local ffi = require "ffi"
ffi.cdef "typedef struct { double x, y, speed; } particle;"

local function move(all, i, dt)
  local p = all[i]
  p.x, p.y = p.x + p.speed * dt, p.y - dt
end

local all = ffi.new("particle[?]", 20001)
for i = 1, 20000 do all[i].x, all[i].y, all[i].speed = i, -i, i % 7 end
for frame = 1, 600 do
  for i = 1, 20000 do move(all, i, 0.5) end
end
local sum = 0
for i = 1, 20000 do sum = sum + all[i].x + all[i].y end
print(sum)
