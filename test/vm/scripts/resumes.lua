-- coroutine.resume and coroutine.wrap, where a program could tell their inside:
-- messages with places, tracebacks, hooks, and stacks that are full.

local yield, wrap, create = coroutine.yield, coroutine.wrap, coroutine.create
local resume, status = coroutine.resume, coroutine.status
local function clean(text)
  return (tostring(text):gsub("0x%x+", "ADDR"))
end

-- Who says what, and where.
local function thrower(what, level)
  return function() error(what, level) end
end
local function outer_line(f) return f() end
for level = 0, 3 do
  print(level, pcall(outer_line, wrap(thrower("text", level))))
  print(level, resume(create(thrower("text", level))))
  print(level, pcall(function() return wrap(thrower("text", level))() end))
  print(level, pcall(function() local r = wrap(thrower("text", level))() return r end))
end
print(pcall(wrap, nil), pcall(wrap), pcall(resume), pcall(resume, "x", 1), pcall(create))
print(pcall(function() resume(nil) end))
print(pcall(function() resume(1, 2, 3) end))
print(select("#", resume(create(function() end))), resume(create(print), 1, nil, 2))
print(resume(create(resume), create(function() return 1, 2 end)))
print(resume(create(resume), create(function() error("in", 0) end)))
print(resume(create(resume), 5))
print(resume(create(wrap(function() yield(1) return 2 end))))
print(pcall(resume, coroutine.running() or create(print)))
local finished = wrap(function() return "last" end)
print(finished(), pcall(finished))
print(pcall(function() finished() end))
local failed = wrap(function() error("first", 0) end)
print(pcall(failed), pcall(failed), pcall(failed))
local inside
inside = wrap(function() return pcall(inside) end)
print(inside())
local objects = {}
print(select(2, pcall(wrap(function() error(objects) end))) == objects)
print(pcall(wrap(function() error() end)), pcall(wrap(function() error(nil) end)))
print(pcall(wrap(function() error(17) end)), pcall(wrap(function() error(true) end)))
print(xpcall(function() wrap(function() local x = nil + 1 end)() end,
  function(m) return "handler: " .. m end))
print(xpcall(wrap(function() error("direct") end), function(m)
  return "handler: " .. m
end))

-- Tracebacks, and what debug says of the functions.
local function trace(...) return clean(debug.traceback(...)) end
local chain = wrap(function()
  local text = wrap(function() return trace("innermost") end)()
  yield(text)
  return trace("outer")
end)
print(chain())
print(chain())
local waiting = create(function() wrap(function() yield() end)() yield() end)
resume(waiting)
print(trace(waiting), trace(waiting, "message", 0))
print(xpcall(function() wrap(function() error("traced") end)() end, trace))
print(xpcall(function() assert(resume(create(function() error("asserted") end))) end, trace))
for _, f in ipairs { resume, wrap, create, yield, wrap(print) } do
  local info = debug.getinfo(f)
  print(info.what, info.short_src, info.currentline, info.nups, info.linedefined,
    clean(info.func) == clean(f))
end
local parent
local child = create(function()
  for level = 0, 4 do
    local info = debug.getinfo(parent, level)
    if info then print(level, info.what, info.name, info.namewhat, info.currentline) end
  end
  print(status(parent), coroutine.isyieldable and coroutine.isyieldable())
end)
parent = create(function() resume(child) end)
resume(parent)

-- Hooks see the same events. (Which lines run as compiled code is a matter of chance.)
local compiles = jit.status()
jit.off()
jit.flush()
local events = {}
local function hooked(mask, f, count)
  events = {}
  debug.sethook(function(event, line)
    local info = debug.getinfo(2, "S")
    events[#events + 1] = event .. (line or "") .. info.what
  end, mask, count)
  f()
  debug.sethook()
  print(mask, #events, table.concat(events, " "))
end
local function two()
  local w = wrap(function(a) yield(a) end)
  w(1)
  w(2)
  resume(create(function() return 1 end), 1, 2)
  resume(create(function() error("x") end))
end
for _, mask in ipairs { "c", "r", "l", "cr", "crl" } do
  hooked(mask, two)
end
hooked("", two, 7)
-- A hook that changes while a coroutine runs.
hooked("c", function()
  wrap(function()
    debug.sethook()
    yield()
  end)()
end)

if compiles then jit.on() end

-- Full stacks: many arguments, many results, deep calls.
local function count(...) return select("#", ...) end
for _, n in ipairs { 0, 1, 7, 19, 20, 21, 40, 200, 249, 250, 1000, 7000 } do
  local co = create(function(...) return count(...), count(yield(...)) end)
  print(n, count(resume(co, unpack({}, 1, n))), select(2, resume(co, unpack({}, 1, n))))
  local w = wrap(function(...) yield(...) return ... end)
  print(n, count(w(unpack({}, 1, n))), count(w(unpack({}, 1, n + 3))))
end
local function message(ok, text) return ok, ok or (tostring(text):gsub("^.-:%d+: ", "")) end
local function spread(n, f) -- f gets n values, of 7000 in each step
  if n <= 7000 then return f(unpack({}, 1, n)) end
  return (function(...) return f(...) end)(unpack({}, 1, n % 7000 + 1))
end
for _, n in ipairs { 6999, 7000, 7001 } do
  print(n, message(pcall(spread, n, wrap(function(...) yield(...) end))))
end
for _, way in ipairs { "resume", "wrap" } do
  local deepest, ends = 0, 0
  local function dive(n)
    deepest = n
    if way == "wrap" then
      wrap(function() return 1 end)()
    else
      resume(create(function() return 1 end))
    end
    dive(n + 1)
    ends = ends + 1
  end
  print(way, message(pcall(dive, 1)), deepest > 1000, ends)
end
-- A young thread gets more than it has room for.
for _, n in ipairs { 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 30, 60, 1000, 7900 } do
  local gives = create(function() while true do yield(unpack({}, 1, n)) end end)
  local gives_wrapped = wrap(function() while true do yield(unpack({}, 1, n)) end end)
  print(n, wrap(function() return count(resume(gives)) end)(),
    wrap(function() return count(gives_wrapped()) end)(),
    select(2, resume(create(resume), gives)), count(resume(create(resume), gives)),
    count(wrap(gives_wrapped)()))
end
-- Results that the resumer has no room for come again, as before.
local function fill(n, f)
  if n == 0 then return f() end
  local a, b, c, d, e, g, h, i = 1, 2, 3, 4, 5, 6, 7, 8
  return fill(n - 1, f), a, b, c, d, e, g, h, i
end
for n = 1, 4 do
  local co = create(function() yield(unpack({}, 1, 7900)) return "after" end)
  print(n, message(pcall(fill, n * 100, function() return resume(co) end)), status(co))
end

-- Nested as deep as this, on the machine's stack.
local function nest(n)
  if n == 0 then return "innermost" end
  return select(2, resume(create(nest), n - 1))
end
print(nest(10), nest(150))
local function nest_wrap(n) return n == 0 and 0 or 1 + wrap(nest_wrap)(n - 1) end
print(nest_wrap(10), nest_wrap(150))

-- Called by everything that calls.
local t = setmetatable({}, { __index = wrap(function(_, k)
  while true do _, k = yield(k .. "!") end end) })
print(t.a, t.b, t.c)
local called = setmetatable({}, { __call = wrap(function(self, x)
  while true do self, x = yield(x * 2) end end) })
print(called(1), called(2))
print((("abc"):gsub(".", wrap(function(c) while true do c = yield(c:upper()) end end))))
local numbers = { 3, 1, 2 }
table.sort(numbers, function(a, b) return select(2, resume(create(function()
  return a < b end))) end)
print(unpack(numbers))
for k, v in wrap(function() for i = 1, 3 do yield(i, i * i) end end) do print(k, v) end
print(pcall(function() for x in wrap(function() yield(1) error("loop", 0) end) do print(x) end end))
local added = setmetatable({}, { __add = function(_, b) return wrap(function()
  return b + 1 end)() end, __concat = wrap(function(_, b) return b end),
  __lt = function() return wrap(function() return true end)() end,
  __len = wrap(function() return 9 end) })
print(added + 1, added .. "x", added < setmetatable({}, getmetatable(added)))
print(wrap(function(...) return pcall(pcall, yield, ...) end)(1, 2))
print(loadstring("local a = ... return coroutine.wrap(a)()")(function() return "chunk" end))

-- Yields through several resumes, and status on the way.
local function state(c) return status(c):sub(1, 1) end
local a, b, c
c = create(function() yield(state(a) .. state(b) .. state(c)) return "c" end)
b = create(function() yield(select(2, resume(c))) yield(select(2, resume(c))) end)
a = create(function() yield(select(2, resume(b))) yield(select(2, resume(b))) end)
print(select(2, resume(a)), state(a), state(b), state(c))
print(select(2, resume(a)), state(a), state(b), state(c))
print(resume(c), resume(b), resume(a), state(a), state(b), state(c))
local same = create(function() return coroutine.running() end)
print(select(2, resume(same)) == same)

-- Hot loops, with what the compiler stitches.
local sum = 0
local ticks = wrap(function(x) while true do x = yield(x + 1) end end)
for i = 1, 3000 do sum = sum + ticks(i) end
print(sum)
local fresh = 0
for i = 1, 2000 do
  local ok, x = resume(create(function(y) if y % 7 == 0 then error(y, 0) end return y end), i)
  fresh = fresh + (ok and x or -x)
end
print(fresh)
local function generate(n) return wrap(function() for i = 1, n do yield(i) end end) end
for round = 1, 40 do
  for i in generate(60) do sum = sum + i end
end
print(sum)
do
  local got = {}
  for i = 1, 200 do
    local co = create(function(...) local n = 0 while true do
      n = n + select("#", ...) * (yield(n, ...) or 1) end end)
    resume(co, i, nil)
    local _, n = resume(co, i)
    got[#got + 1] = n
    if i % 50 == 0 then collectgarbage() end
  end
  print(#got, got[1], got[200])
end
