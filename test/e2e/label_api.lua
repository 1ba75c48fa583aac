-- misc.profile.label, labels and with: what they take, and whose labels they are.
-- Usage: label_api.lua
local checks = dofile((arg[0]:gsub("[^/]+$", "checks.lua")))
local check, fails = checks.check, checks.fails
local profile = misc.profile

-- now: the labels as text, sorted.
local function now()
  local all = {}
  for key, value in pairs(profile.labels()) do
    all[#all + 1] = key .. "=" .. value
  end
  table.sort(all)
  return table.concat(all, ",")
end
local function are(wanted, what)
  check(now() == wanted, what, wanted, now())
end

are("", "no labels at first")
check(profile.label { route = "/a", n = 3, ok = true } == true, "label")
are("n=3,ok=true,route=/a", "strings, numbers and true")
check(profile.label { ok = false, n = false, absent = false }, "take away")
are("route=/a", "false takes a label away")
check(profile.label { tenant = "x" }, "add")
are("route=/a,tenant=x", "the others stay")
check(profile.label {}, "nothing")
are("route=/a,tenant=x", "an empty table changes nothing")

fails("a string", 22, "labels are a table like", profile.label("route"))
fails("nothing", 22, "label takes one table", profile.label())
fails("two", 22, "label takes one table", profile.label({}, {}))
fails("a list", 22, "a label's key is a string, not a number",
  profile.label { "x" })
fails("a table", 22, "label 'a' is a string, a number, true or false, not a table",
  profile.label { a = {} })
fails("an empty key", 22, "'' cannot be the key", profile.label { [""] = "x" })
fails("a key with =", 22, "'a=b' cannot be the key", profile.label { ["a=b"] = "x" })
fails("a long key", 22, "cannot be the key", profile.label { [("k"):rep(65)] = "x" })
fails("a long value", 22, "has a value of 257 bytes",
  profile.label { a = ("x"):rep(257) })
fails("a NUL", 22, "label 'a' has a value of 3 bytes",
  profile.label { a = "x\0y" })
local many = {}
for i = 1, 17 do many["k" .. i] = i end
fails("many", 22, "one too many", profile.label(many))
local long = {}
for i = 1, 5 do long["k" .. i] = ("x"):rep(250) end
fails("long", 22, "too long together", profile.label(long))
are("route=/a,tenant=x", "a refused call changes nothing")

-- Labels of requests: what a process without any says.
fails("variables", 95, "no nginx", profile.label_requests { route = "uri" })
fails("no variables", 95, "no nginx", profile.label_requests {})
fails("a dollar", 22, "label 'route' has the variable '$uri'",
  profile.label_requests { route = "$uri" })
fails("true", 22, "label 'route' has the variable 'true'",
  profile.label_requests { route = true })
fails("a number", 22, "label 'route' has the variable '1'",
  profile.label_requests { route = 1 })
fails("no table", 22, "labels are a table like", profile.label_requests("uri"))
fails("two tables", 22, "label_requests takes one table",
  profile.label_requests({}, {}))
local nine = {}
for i = 1, 9 do nine["k" .. i] = "uri" end
fails("nine", 22, "at most 8 labels, not 9", profile.label_requests(nine))
for i = 1, 9 do nine["k" .. i] = ("x"):rep(250) end
fails("long names", 22, "too long together", profile.label_requests(nine))
are("route=/a,tenant=x", "nor does that")

-- Coroutines inherit, and have their own.
local function body()
  are("route=/a,tenant=x", "a coroutine inherits")
  profile.label { route = "/co" }
  coroutine.yield()
  are("route=/co,tenant=x", "and keeps its own")
  local inner = coroutine.wrap(function()
    are("route=/co,tenant=x", "the next one inherits from that one")
    profile.label { route = "/inner" }
  end)
  inner()
  are("route=/co,tenant=x", "and changes only its own")
  error("dies")
end
local co = coroutine.create(body)
check(coroutine.resume(co), "resume")
are("route=/a,tenant=x", "the resumer has its own")
profile.label { route = "/main" }
local ok, message = coroutine.resume(co)
check(not ok and message:find("dies"), "the coroutine dies", message)
are("route=/main,tenant=x", "an error leaves them")

-- with: for one call.
local function three(...)
  check(select("#", ...) == 3, "with: arguments")
  return 1, nil, ...
end
profile.with({ route = "/with" }, are, "route=/with,tenant=x", "with: within")
local results = { profile.with({ route = "/with" }, three, nil, "b", nil) }
check(results[1] == 1 and results[4] == "b", "with: results")
check(select("#", profile.with({}, three, nil, nil, nil)) == 5, "with: all results")
check(select("#", profile.with({}, function() end)) == 0, "with: no results")
are("route=/main,tenant=x", "with: after")
local thrown = {}
local ok2, caught = pcall(profile.with, { route = "/err" }, error, thrown)
check(not ok2 and caught == thrown, "with: errors pass", caught)
are("route=/main,tenant=x", "with: after an error")
local wrapped = coroutine.wrap(function()
  return profile.with({ route = "/y" }, function(x)
    local got = coroutine.yield(x + 1)
    are("route=/y,tenant=x", "with: after a yield")
    return got
  end, 1)
end)
check(wrapped() == 2, "with: yields")
are("route=/main,tenant=x", "with: elsewhere")
check(wrapped("got") == "got", "with: ends")
for what, bad in pairs { text = "route", list = { 1 } } do
  local ok3, why = pcall(profile.with, bad, print)
  check(not ok3 and why:find("bad argument #1 to 'with'", 1, true), what, why)
end
local ok4, why4 = pcall(profile.with, {})
check(not ok4 and why4:find("bad argument #2 to 'with'", 1, true), "no function",
  why4)
are("route=/main,tenant=x", "with: nothing has changed")
check(profile.with == profile.with, "with is one function")
check(profile.nothing == nil, "other fields are nil")

-- Many values: the last ones are others.
for i = 1, 10000 do
  check(profile.label { url = "/" .. i }, "a value")
end
check(profile.labels().url == "(other)", "too many", profile.labels().url)
print(checks.count .. " checks")
