-- luajit memprof_sampled.lua FILE: blocks of three sizes, sampled; half of them
-- are freed again.
local new_table = require "table.new"
local ffi = require "ffi"
local keep = new_table(400000, 0)
local n = 0
local function fill(count, type)
  for _ = 1, count do
    n = n + 1
    keep[n] = type()
  end
end
assert(misc.memprof.start { path = arg[1], sample = 4096 })
fill(200003, ffi.typeof "char[1]")
fill(20011, ffi.typeof "char[4080]")
fill(13, ffi.typeof "char[1048559]")
for i = 2, n, 2 do keep[i] = false end
collectgarbage()
collectgarbage()
assert(misc.memprof.stop())
