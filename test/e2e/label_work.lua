-- Work in coroutines that take turns, each with labels of its own; tells what each
-- label should have. Usage: label_work.lua cpu|memory. Prints lines "KEY VALUE
-- AMOUNT": nanoseconds of CPU time, or bytes allocated.
local ffi = require("ffi")
ffi.cdef [[
  struct ljp_time { long s, ns; };
  int clock_gettime(int clock, struct ljp_time *at);
]]
local THREAD_CLOCK = 3
local profile, what = misc.profile, arg[1]
local at = ffi.new("struct ljp_time")
local function used()
  ffi.C.clock_gettime(THREAD_CLOCK, at)
  return tonumber(at.s) * 1e9 + tonumber(at.ns)
end
local spent = {}
local function add(key, value, amount)
  local name = key .. " " .. value
  spent[name] = (spent[name] or 0) + amount
end

local function tables(count)
  local before, kept = collectgarbage("count")
  for i = 1, count * 10 do
    kept = { i, kept and i }
  end
  return (collectgarbage("count") - before) * 1024
end
local function spin(count)
  local sum = 0
  for i = 1, count * 20000 do
    sum = sum + i % 7
  end
  return sum
end
if what == "memory" then
  jit.off()
  collectgarbage("stop")
end

-- Yields below pcall, with and nested coroutines.
local function slice(route, tenant, units)
  local before = used()
  local bytes = what == "memory" and tables(units)
  if not bytes then
    spin(units)
  end
  local amount = bytes or used() - before
  add("route", route, amount)
  add("tenant", tenant, amount)
  coroutine.yield()
end
local function handler(route, tenant, units)
  return coroutine.create(function()
    profile.label { route = route }
    for i = 1, 100 do
      if i % 3 == 0 then
        profile.with({ tenant = tenant }, slice, route, tenant, units)
      elseif i % 3 == 1 then
        profile.label { tenant = tenant }
        pcall(slice, route, tenant, units)
        profile.label { tenant = false }
      else
        profile.label { tenant = tenant }
        local inner = coroutine.wrap(slice)
        inner(route, tenant, units)
        coroutine.yield()
        profile.label { tenant = false }
      end
    end
  end)
end
local all = {}
for i, route in ipairs { "/a", "/b", "/c" } do
  all[#all + 1] = handler(route, "x", i * 10)
  all[#all + 1] = handler(route, "y", i * 5)
end
for _ = 1, 100 do
  for _, co in ipairs(all) do
    assert(coroutine.resume(co))
  end
end
for name, amount in pairs(spent) do
  print(("%s %.0f"):format(name, amount))
end
