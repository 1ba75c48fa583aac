-- misc.profile.publish_labels: what this thread shows is always what labels() says.
-- Usage: publish.lua [SEED]
local checks = dofile((arg[0]:gsub("[^/]+$", "checks.lua")))
local check, fails = checks.check, checks.fails
local profile = misc.profile
local published = require("published")
local seed = tonumber(arg[1]) or 7
math.randomseed(seed)

local function text(labels)
  local all = {}
  for key, value in pairs(labels) do
    all[#all + 1] = { key, value }
  end
  table.sort(all, function(a, b) return a[1] < b[1] end)
  for i, pair in ipairs(all) do
    all[i] = pair[1] .. "=" .. pair[2]
  end
  return all[1] and table.concat(all, ",")
end

-- What is shown is what the work is labelled with, and that is `wanted`.
local function shows(wanted, what)
  local shown = published.shown()
  check(shown == wanted, what .. ": shown", wanted, shown)
  check(text(profile.labels()) == wanted, what .. ": labels")
end
local function agree(what)
  local labels, shown = text(profile.labels()), published.shown()
  check(labels == shown, what, labels, shown)
end

-- Functions from before, as programs keep them.
local create, yield = coroutine.create, coroutine.yield
local resume, wrap = coroutine.resume, coroutine.wrap
local early = wrap(function()
  profile.label { early = "yes" }
  for _ = 1, 300 do yield() end
  agree("a wrapped coroutine from before")
  check(profile.labels().early == "yes", "a wrapped coroutine from before")
end)
-- It is called by compiled code, before and afterwards.
local function often(f, n)
  for _ = 1, n do f() end
end
often(early, 299)

if os.getenv("LJPROF_PUBLISH_LABELS") then
  check(profile.status().publish_labels, "the environment asks for it")
else
  profile.label { route = "/a" }
  check(published.shown() == nil and published.keys() == nil,
    "nothing is published unasked")
  check(profile.status().publish_labels == nil, "status: nothing")
  fails("no argument", 22, "publish_labels takes true or false",
    profile.publish_labels())
  fails("a number", 22, "publish_labels takes true or false",
    profile.publish_labels(1))
  check(profile.publish_labels(false) == true, "an end without a beginning")
end

check(profile.publish_labels(true) == true, "begin")
profile.label { route = "/a" }
shows("route=/a", "the main thread")
check(profile.publish_labels(true) == true, "twice")
shows("route=/a", "the main thread, twice")
local status = profile.status().publish_labels
check(status.sets >= 1 and status.keys >= 1 and status.cut == 0, "status")
early()
often(early, 1)
shows("route=/a", "after the wrapped one")
local works = wrap(function()
  profile.label { route = "/works" }
  while true do
    agree("in compiled code")
    yield()
  end
end)
often(works, 300)
shows("route=/a", "after compiled code")

profile.label { tenant = "x" }
shows("route=/a,tenant=x", "two labels")
profile.label { route = false, tenant = false }
shows(nil, "no labels")
profile.label { route = "/a" }

-- Every way into a coroutine and out of it.
local co = create(function(...)
  shows("route=/a", "a coroutine inherits")
  profile.label { route = "/co" }
  shows("route=/co", "a coroutine's own label")
  yield(...)
  shows("route=/co", "after a yield")
  local inner = wrap(function()
    shows("route=/co", "a coroutine in a coroutine inherits")
    profile.label { route = "/inner" }
    yield(1)
    shows("route=/inner", "the inner one again")
    error("inner")
  end)
  check(inner() == 1, "wrap: results")
  shows("route=/co", "after the inner one")
  local ok, message = pcall(inner)
  check(not ok and message:find("inner$"), "wrap: error", message)
  shows("route=/co", "after an error of the inner one")
  profile.with({ phase = "render" }, function()
    shows("phase=render,route=/co", "with")
    yield()
    shows("phase=render,route=/co", "with, after a yield")
  end)
  shows("route=/co", "after with")
  error({})
end)
local function step(...)
  local results = { resume(co, ...) }
  shows("route=/a", "the resumer")
  return unpack(results)
end
check(select("#", resume(co, 1, nil, nil)) == 4, "results: all")
step()
step()
local ok = step()
check(not ok, "the coroutine has failed")
local dead, message = step()
check(not dead and message == "cannot resume dead coroutine", message)
dead, message = resume(coroutine.running() or co)
check(not dead and message:find("cannot resume"), message)
shows("route=/a", "after refusals")
for value in wrap(function() for i = 1, 3 do profile.label { i = i } yield(i) end end) do
  check(value, "an iterator")
  shows("route=/a", "in a loop over a coroutine")
end
check(pcall(wrap(function() shows("route=/a", "below pcall") end)), "pcall(wrap)")
local nested = create(resume)
check(resume(nested, create(function()
  profile.label { route = "/nested" }
  shows("route=/nested", "resume as a coroutine")
end)), "resume as a coroutine")
shows("route=/a", "after resume as a coroutine")
setmetatable(_G, { __index = wrap(function() while true do
  profile.label { route = "/index" }
  yield("value") end end) })
check(undefined_name == "value", "a metamethod")
setmetatable(_G, nil)
shows("route=/a", "after a metamethod")
check(xpcall(function()
  wrap(function() profile.label { route = "/x" } error("x") end)()
end, function()
  agree("in a handler of errors")
end) == false, "xpcall")
shows("route=/a", "after xpcall")

-- Callbacks, finalizers, hooks.
local ffi = require("ffi")
local called = false
local callback = ffi.cast("int (*)(const void *, const void *)", function()
  called = true
  agree("a callback")
  wrap(function() profile.label { route = "/cb" } agree("in a callback") end)()
  agree("a callback, afterwards")
  return 0
end)
ffi.cdef "void qsort(void *, size_t, size_t, int (*)(const void *, const void *));"
local function sort() ffi.C.qsort(ffi.new("int[2]"), 2, 4, callback) end
jit.off(sort)
wrap(function() profile.label { route = "/sort" } sort() agree("after it") end)()
check(called, "a callback")
callback:free()
shows("route=/a", "after callbacks")
wrap(function()
  profile.label { route = "/gc" }
  -- Upstream's newest has a thread of its own for finalizers, which has no labels.
  local this = coroutine.running()
  do
    local proxy = newproxy(true)
    getmetatable(proxy).__gc = function()
      if coroutine.running() == this then agree("a finalizer") end
      called = "gc"
    end
  end
  collectgarbage()
  collectgarbage()
end)()
check(called == "gc", "a finalizer")
debug.sethook(function() agree("a hook") end, "", 1)
wrap(function() profile.label { route = "/hook" } yield() end)()
debug.sethook()
shows("route=/a", "after hooks")

-- Values as readers want them.
local function shown_of(value)
  return profile.with({ v = value, route = false }, published.shown)
end
check(shown_of("\195\164\226\130\172\240\159\146\168") ==
  "v=\195\164\226\130\172\240\159\146\168", "UTF-8")
local latin = "a\255\192\128\237\160\128\244\144\128\128b\195"
check(shown_of(latin) == "v=a" .. ("?"):rep(10) .. "b?", "not UTF-8",
  shown_of(latin))
check(shown_of(("x"):rep(256)) == "v=" .. ("x"):rep(255), "a long value")
check(shown_of(("x"):rep(254) .. "\195\164") == "v=" .. ("x"):rep(254),
  "no half characters")
check(profile.status().publish_labels.cut == 2, "cut values are counted",
  profile.status().publish_labels.cut)
local four = {}
for i = 1, 4 do four["l" .. i] = ("y"):rep(200) end
check(profile.with(four, published.shown):gsub("=y+", "=y") ==
  "l1=y,l2=y,l3=y,route=/a", "a record has 640 bytes")
check(profile.status().publish_labels.cut == 3, "and what is left out is counted",
  profile.status().publish_labels.cut)
shows("route=/a", "after long values")

-- A tree of coroutines, at random.
local alive, steps = {}, 0
local function act(depth)
  for _ = 1, math.random(4) do
    steps = steps + 1
    agree("at random")
    local what = math.random(10)
    if what <= 3 then
      profile.label { route = "/" .. math.random(30), deep = depth > 3 or false }
    elseif what == 4 then
      yield(steps)
    elseif what == 5 and math.random(3) == 1 then
      error("at random", 0)
    elseif what <= 7 and depth < 12 then
      local new = math.random(2) == 1
      if new or #alive == 0 then
        local body = create(act)
        alive[#alive + 1] = body
        resume(body, depth + 1)
      else
        local i = math.random(#alive)
        if not resume(alive[i]) then
          alive[i] = alive[#alive]
          alive[#alive] = nil
        end
      end
    elseif what == 8 and depth < 12 then
      local f = wrap(act)
      pcall(f, depth + 1)
      pcall(f)
    elseif what == 9 then
      pcall(profile.with, { phase = steps % 7 }, function()
        agree("with, at random")
        if math.random(2) == 1 then yield() end
        agree("with, at random, afterwards")
      end)
    end
    agree("at random, afterwards")
  end
end
for _ = 1, 3000 do
  pcall(wrap(act), 1)
  shows("route=/a", "after a tree")
end

-- An end, and a beginning again: in a coroutine, too.
check(profile.publish_labels(false) == true, "end")
check(published.shown() == nil and published.keys() == nil, "nothing is left")
local silent = wrap(function()
  while true do yield(published.shown() == nil) end
end)
for _ = 1, 300 do check(silent() == true, "compiled code shows nothing") end
local body = create(function()
  profile.label { route = "/quiet" }
  check(published.shown() == nil, "nothing is published any more")
  check(profile.publish_labels(true), "begin in a coroutine")
  check(published.shown() == nil, "begun: not before it is resumed again")
  wrap(function() shows("route=/quiet", "but in others") end)()
  check(published.shown() == nil, "begun: not after others, either")
  yield()
  shows("route=/quiet", "resumed again")
end)
check(resume(body), "begun in a coroutine")
check(published.shown() == nil, "nor does the main thread show its labels")
check(resume(body), "begun in a coroutine, resumed")
shows("route=/a", "the main thread was noted before")
check(profile.publish_labels(true), "again, on the main thread")
for _ = 1, 100 do check(silent() == false, "compiled code shows labels again") end
check(profile.publish_labels(false), "once more")
for _ = 1, 100 do check(silent() == true, "and nothing again") end
do
  local proxy = newproxy(true)
  local result
  getmetatable(proxy).__gc = function()
    result = { profile.publish_labels(true) }
  end
  proxy = nil
  collectgarbage()
  fails("in a finalizer", 1, "labels cannot be published from a finalizer",
    unpack(result, 1, 3))
end
check(profile.publish_labels(true), "and again")
do
  local proxy = newproxy(true)
  getmetatable(proxy).__gc = function() profile.publish_labels(false) end
  proxy = nil
  collectgarbage()
  check(published.shown() == nil, "ended in a finalizer")
  wrap(function() check(published.shown() == nil, "ended, elsewhere") end)()
end
check(profile.publish_labels(true), "for the rest")
profile.label { route = "/b" }
shows("route=/b", "the main thread shows its own")
wrap(function()
  profile.label { route = "/c" }
  wrap(function()
    profile.label { route = "/d" }
    profile.publish_labels(false)
    check(published.shown() == nil, "ended deep inside")
  end)()
  check(published.shown() == nil, "ended inside")
  check(profile.publish_labels(true), "begun again inside")
  shows("route=/c", "begun again")
end)()
agree("begun again, outside")

-- Keys without end, and sets without end.
local without = 0
for i = 1, 260 do
  local shown = profile.with({ ["key" .. i] = i, route = false }, published.shown)
  check(shown == "key" .. i .. "=" .. i or shown == "", "many keys", shown)
  without = without + (shown == "" and 1 or 0)
end
check(#published.keys() == 256 and without > 3 and without < 20, "keys", without)
check(profile.status().publish_labels.cut == 3 + without, "keys left out are counted")
for i = 1, 10000 do
  profile.label { tenant = "/" .. i }
  if i % 499 == 0 then agree("many sets") end
end
shows("route=/b,tenant=(other)", "sets without end are (other)")
print(checks.count .. " checks, " .. steps .. " random steps")
