-- Allocates at few places, over and over, from stacks that change in all the
-- ways in which stacks do, with each stack that the profiler remembers compared
-- with one that it walks (LJPROF_MEMPROF_CHECK=1). Prints: compared, different,
-- remembered, stacks that were cut.
--   luajit memprof_again.lua STREAM VARIED [native]
local path, varied, native = ...
varied = assert(loadfile(varied))
local keep

local function leaf(n) keep = { n } return keep end
local function plain(n) for i = 1, n do keep = leaf(i) end end
local function down(n, f) if n == 0 then return f() end local t = down(n - 1, f) return { t } end
local function tree(n) if n == 0 then return {} end return { tree(n - 1), tree(n - 1) } end
local function spread(f, ...) local t = f(...) return { t, ... } end
local function made(i) return function() keep = { i } return keep end end

local point = setmetatable({}, {
  __index = function(_, k) return { k } end,
  __add = function(a, b) return { a, b } end,
  __concat = function(a, b) return { a, b } end,
})

local function generator(n)
  return coroutine.wrap(function()
    for i = 1, n do coroutine.yield(leaf(i)) end
  end)
end

-- More coroutines than there is room for deep ones, each going on from where it was.
local function sink(n)
  if n > 0 then return sink(n - 1) + 1 end
  keep = { n }
  coroutine.yield()
  keep = { n }
  return 0
end
local sinking = {}
for c = 1, 150 do
  sinking[c] = coroutine.wrap(function()
    while true do for n = 0, 2 do sink((c % 7 == 0 and 70 or c % 5) + n) end end
  end)
end

local work = {
  function() for c = 1, #sinking do sinking[c]() end end,
  function(i) plain(40 + i % 7) end,
  function(i) down(i % 50, function() return { i } end) end,
  function() tree(6) end,
  function(i) for k = 1, 30 do spread(leaf, k, i) end end,
  function(i) for k = 1, 30 do keep = point[k] keep = point + k keep = point .. k end end,
  function(i) keep = ("a b c d e f"):gsub("%w", function(w) return w .. leaf(i)[1] end) end,
  function()
    local t = {}
    for k = 1, 20 do t[k] = { k * 7 % 20 } end
    table.sort(t, function(a, b) keep = { a } return a[1] < b[1] end)
  end,
  function(i) for v in generator(9) do keep = { v, i } end end,
  function(i)
    local a, b = generator(9), generator(9)
    for _ = 1, 9 do keep = { a(), b() } end
  end,
  function(i)
    for k = 1, 20 do
      pcall(function() keep = { k } if k % 3 == 0 then error({ i }) end leaf(k) end)
    end
  end,
  function(i) for k = 1, 20 do keep = k .. "," .. i end end,
  function(i) for k = 1, 20 do made(k)() end end,
  function(i) keep = assert(loadstring("return function() return {" .. i % 3 .. "} end"))()() end,
  function(i) -- the same stack of Lua with one link or function changed
    for k = 1, 20 do
      local f = k % 2 == 0 and leaf or made(k)
      local t = f(k)
      keep = { t, f(k) }
    end
  end,
  function(i) -- continuations: from two places, the frames are the same
    for _ = 1, 20 do
      keep = point[i]
      keep = point[i]
    end
  end,
  function(i) -- finalizers, called from here and there, and from a deeper stack
    for k = 1, 30 do
      getmetatable(newproxy(true)).__gc = function() keep = { leaf(k), point[k] } end
      keep = { i, k }
    end
    if i % 4 == 0 then down(i % 20, collectgarbage) end
  end,
  function(i) -- C functions that call back: from two lines, from finalizers' callers
    local function seen(a, b) keep = { a } return leaf(b) and nil end
    for k = 1, 5 do
      table.foreach({ i, k }, seen)
      table.foreach({ k }, function(a) keep = { a } table.foreach({ i }, seen) end)
    end
    table.foreach({ i, i }, seen)
  end,
  function(i) -- C functions that ask for metamethods
    local list = setmetatable({}, { __index = point, __tostring = function() return "l" .. leaf(i)[1] end })
    for _ = 1, 9 do keep = tostring(list) end
    for _ = 1, 9 do table.sort({ 3, 1, 2 }, function(a, b) keep = { i } return a < b end) keep = tostring(list) end
  end,
  function(i) -- a hook, by counts and by lines, in whatever runs then
    debug.sethook(function() keep = { i } end, i % 2 == 0 and "l" or "", 7)
    for k = 1, 9 do keep = leaf(k) keep = point[k] end
    keep = ("a b"):gsub("%w", function(w) return leaf(w)[1] end)
    debug.sethook()
  end,
  function(i) -- in a coroutine's callbacks, and errors through all of it
    local co = coroutine.wrap(function(n)
      for k = 1, n do
        pcall(table.foreach, { k, 2 }, function(a)
          keep = { a, leaf(k) }
          coroutine.wrap(function() keep = { a } table.foreach({ a }, function(b) keep = { b } end) end)()
          if k % 3 == 0 then error({ a }) end
        end)
        coroutine.yield({ k })
      end
    end)
    for _ = 1, i % 5 do keep = co(5) end
  end,
  varied,
}

-- "some": most of them, since it takes few bytes for one to be hit.
assert(misc.memprof.start { path = path, every = native ~= "some" or nil,
  sample = native == "some" and 64 or nil, native = native == "native" })
for i = 1, 120 do
  for w = 1, #work do work[(w * 7 + i) % #work + 1](i) end
  if i == 60 and jit.status() then jit.flush() end
end
assert(misc.memprof.stop())
local s = misc.memprof.status()
print(s.checked or 0, s.differed or 0, s.remembered, s.cut)
