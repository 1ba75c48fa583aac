-- Makes our hooks work: allocations, functions that come and go, collector steps,
-- compiled and discarded traces.
local function objects()
  local all = {}
  for i = 1, 200 do all[i] = {i, i} end
  return all
end
local function traces()
  for _ = 1, 4 do
    loadstring("local x = 0 for i = 1, 100 do x = x + i end return x")()
  end
end
local function closures(n)
  local all = {}
  for i = 1, n do all[i] = function() return i end end
  return all
end
local stop = os.clock() + 0.3
repeat objects() traces() closures(2000) until os.clock() > stop
