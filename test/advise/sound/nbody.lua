local bodies = {}
for i = 1, 5 do bodies[i] = {x = i, y = i * 2, z = i * 3, vx = 0, vy = 0.1 * i, vz = 0, mass = 1 / i} end

local function advance(bodies, dt)
  for i = 1, #bodies do
    local a = bodies[i]
    for k = i + 1, #bodies do
      local b = bodies[k]
      local dx, dy, dz = a.x - b.x, a.y - b.y, a.z - b.z
      local d = dx * dx + dy * dy + dz * dz
      local f = dt / (d * math.sqrt(d))
      a.vx, a.vy, a.vz = a.vx - dx * b.mass * f, a.vy - dy * b.mass * f, a.vz - dz * b.mass * f
      b.vx, b.vy, b.vz = b.vx + dx * a.mass * f, b.vy + dy * a.mass * f, b.vz + dz * a.mass * f
    end
  end
  for i = 1, #bodies do
    local a = bodies[i]
    a.x, a.y, a.z = a.x + dt * a.vx, a.y + dt * a.vy, a.z + dt * a.vz
  end
end

for i = 1, 1200000 do advance(bodies, 0.001) end
print(bodies[1].x)
