-- kind: interpreted
-- function: week
-- section: c-function-type
local ffi = require "ffi"
ffi.cdef "typedef struct { int quot, rem; } div_t; div_t div(int, int);"
local C = ffi.C

local function week(day)
  local d = C.div(day, 7) -- FAULT
  return (d.quot % 53 + d.rem * 53) % 512, d.rem
end

-- The loops that call it cannot be compiled either, and cost more than it does.
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
