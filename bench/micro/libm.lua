-- Micro-benchmark: functions that the VM calls in libm.
local size = tonumber(arg[1]) or 10
local sin, exp, log, atan2 = math.sin, math.exp, math.log, math.atan2
local fmod = math.fmod
local sum = 0
for i = 1, size * 10000 do
  local x = i % 17 + 0.5
  sum = sum + sin(x) + exp(-x) + log(x) + atan2(x, 2) + fmod(x, 3)
end
print(sum)
