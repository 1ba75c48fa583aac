local ffi = require "ffi"
local function week(day)
  local rest = day % 7
  return ((day - rest) / 7 % 53 + rest * 53) % 512, rest
end

local function early(days, n)
  for i = 1, n do
    local w, d = week(i)
    days[w] = (days[w + 1] + days[w + 7] + days[511 - w] + d) % 8191
  end
end

local function late(days, n)
  for i = 1, n do
    local w, d = week(i)
    days[w] = (days[w + 2] + days[w + 5] + days[w + 9] + d) % 8179
  end
end

local function night(days, n)
  for i = 1, n do
    local w, d = week(i)
    days[w] = (days[w + 3] + days[w + 4] + days[511 - w] + d) % 8171
  end
end

local days, sum = ffi.new "int[521]", 0
for i = 0, 511 do days[i] = i * 7919 % 8191 end
for round = 1, 100 do
  early(days, 2000)
  late(days, 2000)
  night(days, 2000)
  sum = sum + days[round]
end
print(sum)
