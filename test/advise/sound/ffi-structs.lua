local ffi = require "ffi"
ffi.cdef "typedef struct { double x, y, vx, vy; } ljp_particle;"
local n = 4000
local p = ffi.new("ljp_particle[?]", n)
for i = 0, n - 1 do p[i].vx, p[i].vy = i, -i end

local function step(p, n, dt)
  for i = 0, n - 1 do
    p[i].x = p[i].x + p[i].vx * dt
    p[i].y = p[i].y + p[i].vy * dt
    if p[i].x > 100 then p[i].x = 0 end
  end
end

for round = 1, 30000 do step(p, n, 0.01) end
print(p[7].x)
