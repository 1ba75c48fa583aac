-- The fields that misc.*.status() and report() return, and the options that start
-- takes, are those of the reference. Usage: lua_fields.lua lua.md
local checks = dofile((arg[0]:gsub("[^/]+$", "checks.lua")))
local check = checks.check

-- Sections of the document: the rows of the table below a heading.
local sections, above, here = {}, nil, nil
for line in assert(io.open(arg[1])):lines() do
  local level, title = line:match("^(##+) (.*)$")
  if level then
    above = level == "##" and title or above
    here = level == "##" and title or above .. " / " .. title:gsub("`", "")
    sections[here] = {}
  elseif here and line:sub(1, 1) == "|" then
    local first, rest = line:match("^|([^|]*)|(.*)$")
    for name in first:gmatch("`([%w_]+)[`(]") do sections[here][name] = rest end
  end
end
local function section(title)
  return assert(sections[title] and next(sections[title]) and sections[title],
    "no table in " .. title)
end

-- same: each field is documented, and what is documented is a field.
local function same(what, documented, returned)
  for name in pairs(returned) do
    check(documented[name], what .. ": not in the reference: " .. name)
  end
  for name in pairs(documented) do
    check(returned[name] ~= nil, what .. ": never returned: " .. name)
  end
end
-- listed: the keys of a table are in the row of the table's name.
local function listed(what, documented, name, keys)
  for key in pairs(keys) do
    check(documented[name]:find("`" .. key .. "`", 1, true),
      what .. ": not in the reference: " .. name .. "." .. key)
  end
  for key in documented[name]:gmatch("`(%u[%u_]+)`") do
    check(keys[key] ~= nil, what .. ": never returned: " .. name .. "." .. key)
  end
end

-- All fields, whenever they are returned.
local seen = {}
local function see(name, fields)
  local all = seen[name] or {}
  seen[name] = all
  for key, value in pairs(fields) do all[key] = value end
end
local function look()
  see("sysprof.report", misc.sysprof.report())
  see("sysprof.status", misc.sysprof.status())
  see("memprof.status", misc.memprof.status())
  see("profile.status", misc.profile.status())
end
look()
assert(misc.profile.listen("fields.sock"))
assert(misc.profile.publish_labels(true))
assert(misc.profile.start{path = "fields.ljp", memory = {every = true}})
local kept = {}
for i = 1, 1009 do kept[i] = {i} end
look()
assert(misc.profile.stop())
assert(misc.profile.listen(nil))
assert(misc.memprof.start("memory.ljp"))
look()
assert(misc.memprof.stop())
look()

local report = section("misc.sysprof / Fields of report")
same("misc.sysprof.report", report, seen["sysprof.report"])
for _, name in ipairs{"vmstate", "losses", "cuts"} do
  listed("misc.sysprof.report", report, name, seen["sysprof.report"][name])
end
same("misc.sysprof.status", section("misc.sysprof / Fields of status"),
  seen["sysprof.status"])
same("misc.memprof.status", section("misc.memprof / Fields of status"),
  seen["memprof.status"])
local profile = section("misc.profile / Fields of status")
same("misc.profile.status", profile, seen["profile.status"])
listed("misc.profile.status", profile, "publish_labels",
  seen["profile.status"].publish_labels)

-- Functions.
for _, name in ipairs{"sysprof", "memprof", "profile"} do
  same("misc." .. name, section("misc." .. name), misc[name])
end

-- Options: start knows those of the reference. It refuses the value, but not the
-- name.
local function known(what, title, wrap)
  for name in pairs(section(title)) do
    local ok, message = wrap(name)
    check(ok == nil and not message:find("unknown option", 1, true),
      what .. ": " .. name, ok, message)
  end
end
local function alone(profiler)
  return function(name) return profiler.start{[name] = print} end
end
local function part(profiler, own)
  return function(name)
    return profiler.start{[own] = {[name] = print}}
  end
end
known("misc.sysprof", "misc.sysprof / Options of start", alone(misc.sysprof))
known("misc.memprof", "misc.memprof / Options of start", alone(misc.memprof))
known("misc.profile", "misc.profile / Options of start", alone(misc.profile))
for _, name in ipairs{"sysprof", "memprof", "profile"} do
  known("misc." .. name, "Options of every session", alone(misc[name]))
end
local function without(title)
  local rows, own = section(title), {}
  for name, row in pairs(rows) do
    if name ~= "path" and name ~= "fork" then own[name] = row end
  end
  sections["without " .. title] = own
  return "without " .. title
end
known("cpu", without("misc.sysprof / Options of start"),
  part(misc.profile, "cpu"))
known("memory", without("misc.memprof / Options of start"),
  part(misc.profile, "memory"))
print(checks.count .. " checks")
