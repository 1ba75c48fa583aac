-- Allocates at sites whose functions are called site_*. Their blocks have from
-- 16 bytes to 1 MB, of one size a site or (site_mixed_*) of many sizes. Some sites
-- have so few blocks that samples will hardly hit them.
-- Half of the blocks are kept. Each run allocates the same, to the byte.
--
-- sites.lua FILE INTERVAL: takes a sample every INTERVAL bytes on average;
-- 0: records every event
local path, interval = ...
local ffi = require "ffi"
local new_table = require "table.new"
local keep = new_table(200000, 0)
local used = 0

local function hold(v, i)
  if i % 2 == 0 then
    used = used + 1
    keep[used] = v
  end
end

local nothing, box = ffi.typeof "struct {}", ffi.typeof "char[?]"

local function site_16_bytes()
  for i = 1, 50021 do hold(nothing(), i) end
end

local function site_tables()
  for i = 1, 15013 do hold({}, i) end
end

local pad = ("x"):rep(900)
local function site_strings(part)
  for i = 1, 1259 do hold(pad .. part * 100000 + i, i) end
end

local function site_pages()
  for i = 1, 251 do hold(box(4079), i) end
end

local function site_64_kb()
  for i = 1, 17 do hold(box(65521), i) end
end

local function site_1_mb()
  for i = 1, 2 do hold(box(1048573), i) end
end

local function site_mixed_sizes()
  for power = 0, 16 do
    for i = 1, 3 do hold(box(2 ^ power * 16 - 16), i) end
  end
end

local function site_rare_16_bytes()
  for i = 1, 307 do hold(nothing(), i) end
end

local function site_rare_1_kb()
  for i = 1, 11 do hold(box(991), i) end
end

local function site_mixed_growth()
  for i = 1, 7 do
    local t = {}
    for k = 1, 5003 do t[k] = k end
    hold(t, i)
  end
end

local function part(n)
  site_16_bytes()
  site_tables()
  site_strings(n)
  site_pages()
  site_64_kb()
  site_1_mb()
  site_mixed_sizes()
  site_rare_16_bytes()
  site_rare_1_kb()
  site_mixed_growth()
end

collectgarbage()
collectgarbage("stop")
if interval == 0 then
  assert(misc.memprof.start { path = path, every = true })
else
  assert(misc.memprof.start { path = path, sample = interval })
end
part(1)
assert(misc.memprof.mark("half"))
part(2)
for _ = 1, 3 do collectgarbage() end
assert(misc.memprof.stop())
