-- load, loadstring, loadfile, dofile, string.dump and bytecode round trips.
print(loadstring("return 1 + 1")(), load("return ...")(7), load(function()
  return nil end)())
local parts, i = { "return ", "4", "2" }, 0
print(load(function() i = i + 1 return parts[i] end)())
print(load("syntax error here", "=name"))
print(load("return x", "=env", "t", { x = "from env" })())
print(load("return 1", "=m", "b"))
print(pcall(load, nil))
print(load(function() return {} end))
print(load(function() error("reader", 0) end))
print(loadstring("x = = 1", "@file.lua"))
print(loadstring("error('e')", "=(chunk)") and pcall(loadstring("error('e')",
  "=(chunk)")))
for _, src in ipairs { "x =", "for", "if x then", "return return", "local function", "a.b:c = 1", "x = }", "'unfinished", "[[unfinished", "--[[ unfinished", "x = 1e", "x = 0xg", "x = '\\400'", "x = '\\q'", "x = \"\\u{110000000}\"", "local a <const> = 1", "f() = 1", "1 = x", "x, y", "local x = ...; function f() return ... end", "return function() return ... end", "a = @", "a = 5 $", "::x", "for i = 1 do end", "for i, 2 in x do end", "end", "until x", "x = {1, 2", "x = (1", "x = f(", "local 5", "return 1,", "\27Lgarbage", "\27LJ\99", "#!shebang\nreturn 1", "return '\\x41\\z   b\\65\\n'", "return 0b101", "return 5LL, 3ull, 2i", "x = ~1", "x = 1 // 2", "x = a!=b" } do local f, e = loadstring(src, "=s") print((src:gsub("[%c\128-\255]", "?")), f and "ok" or (e:gsub("[%c\128-\255]", "?"))) end
local many = {}
for n = 1, 250 do many[n] = "local v" .. n .. " = " .. n end
print(loadstring(table.concat(many, "\n")))
local ups = {}
for n = 1, 100 do ups[n] = "u" .. n end
print(loadstring("local " .. table.concat(ups, ",") ..
  "\nreturn function() return " .. table.concat(ups, "+") .. " end"))
local ks = {}
for n = 1, 70000 do ks[n] = '"k' .. n .. '"' end
print(#loadstring("return {" .. table.concat(ks, ",") .. "}")())
local lines = ("\n"):rep(70000)
print(select(2, loadstring(lines .. "x = = 1", "=l")))
local jmp = loadstring("local x = ... if x then " ..
  ("x = x + 1 "):rep(20000) .. " end return x", "=j")
print(jmp and jmp(0))
local function sample(a, ...) local t, u = { a, ..., k = "v", [3] = 0.5 }, 5LL
  local function inner(n) if n <= 0 then return 0 end
    return n + inner(n - 1) end for j = 1, 3 do t[j] = j end goto out do
    return "never" end ::out:: return inner(a), select("#", ...), t.k, #t,
  tostring(u), "str\0z", -0.0, 2 ^ 60, nil, true end
for _, strip in ipairs { false, true } do local d = string.dump(sample, strip)
  local f = loadstring(d, "=bc") print(#d > 50, select("#", f(4, 1, 2)), f(4,
  1, 2)) local d2 = string.dump(f, strip)
  print(d == d2, loadstring(d2)(10)) end
local e = string.dump(function() error("where") end, true)
print(pcall(loadstring(e, "=stripped")))
local up = 5
print(pcall(loadstring(string.dump(function() return up end))))
print(pcall(string.dump))
print(load(string.dump(sample), "=t", "t"))
for _ = 1, 60 do
  local f = loadstring(string.dump(loadstring("local s = 0 for i = 1, 100 do s = s + i end return s")))
  up = up + f() end
print(up)
local name = os.tmpname()
local h = assert(io.open(name, "w"))
h:write("#!/usr/bin/lua\nlocal a, b = ...\nX = (X or 0) + 1\nreturn a, b, 'file'")
h:close()
print(loadfile(name)(1, 2))
print(dofile(name))
print(X)
print((select(2, loadfile(name .. ".none")):gsub(name, "NAME")))
print((select(2, pcall(dofile, name .. ".none")):gsub(name, "NAME")))
h = io.open(name, "wb")
h:write(string.dump(sample))
h:close()
print(loadfile(name)(3))
h = io.open(name, "w")
h:write("error('in file')")
h:close()
print((select(2, pcall(dofile, name)):gsub(".*/[^:]*", "NAME")))
local env = { tostring = tostring }
h = io.open(name, "w")
h:write("y = 5 return tostring(y)")
h:close()
print(loadfile(name, "t", env)(), env.y, y)
os.remove(name)
-- environments
local function ef() return z end
setfenv(ef, { z = "fenv" })
print(ef(), getfenv(ef).z, getfenv(1) == _G, pcall(getfenv, 100))
print(pcall(setfenv, 100, {}))
local function sets() setfenv(2, setmetatable({ inside = true }, {
  __index = _G })) end
local function body() sets() return inside end
print(body(), inside)
setfenv(body, _G)
local co = coroutine.create(function() return getfenv(0).mark end)
print(pcall(debug.setfenv, co, { mark = "thread env" }))
print(coroutine.resume(co))
print(_VERSION, _G._G == _G, type(gcinfo), type(arg), arg and #arg, ...)
local names = {}
for k in pairs(_G) do if k ~= "misc" and k ~= "X" and k ~= "jit" then
    names[#names + 1] = k end end
table.sort(names)
print(table.concat(names, " "))
for _, lib in ipairs { "string", "table", "math", "bit", "io", "os", "debug",
  "coroutine", "package", "jit", "ffi", "jit.util", "jit.opt" } do
  local l, n = require(lib), {} for k in pairs(l) do n[#n + 1] = tostring(k)
  end table.sort(n) print(lib, table.concat(n, " ")) end
-- many chunks, each with closures, dropped at once
local total = 0
for n = 1, 400 do local f = loadstring("local a = " .. n ..
  " local function f(x) return function(y) return a + x + y end end return f(" ..
  n .. ")(1)", "=chunk" .. n) total = total + f() end
collectgarbage()
print(total)
