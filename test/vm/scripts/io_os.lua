-- io and os: files, lines, buffering, seeking, popen, errors.
local name = os.tmpname()
local function c(s) return (tostring(s):gsub(name:gsub("%W", "%%%0"),
  "NAME"):gsub("0x%x+", "ADDR")) end
local f = assert(io.open(name, "w"))
print(c(f), io.type(f), f:write("line one\n", 2, " ", 3.5, "\n",
  "\nlast without newline") == f)
print(f:seek("cur"), f:seek("set", 5), f:seek("end"), f:flush() == f,
  f:setvbuf("full", 1024), f:close())
print(io.type(f), c(f), io.type(5), pcall(f.write, f, "x"))
f = io.open(name)
print(f:read(), f:read("*n", "*n"), f:read("*l"), f:read("*l"), f:read(4),
  f:read("*a"), f:read("*a"), f:read("*l"), f:read(0))
f:seek("set")
print(f:read("*L"), f:read(0), f:read(3, 100))
f:close()
for l in io.lines(name) do io.write("[", l, "]") end
print()
for a, b in io.lines(name, 1, 2) do io.write(a, "-", tostring(b), " ") end
print()
print(c(select(2, pcall(io.lines, name .. "x"))), c(select(2, io.open(name ..
  "x"))))
print(c(select(3, pcall(io.open, name, "q"))))
print(select(2, pcall(function() local h = io.open(name) h:close()
  return h:read() end)))
f = io.open(name, "a+")
f:write("+more")
f:seek("set")
print(#f:read("*a"))
f:close()
f = io.open(name, "r+b")
f:write("LINE")
f:seek("set", 0)
print(f:read("*l"))
print(pcall(f.read, f, "*q"))
print(pcall(f.seek, f, "bad"))
for l in f:lines() do io.write(l, ";") end
print()
f:close()
io.output(name)
io.write("via default")
io.close()
io.output(io.stdout)
io.input(name)
print(io.read("*a"))
io.close(io.input())
io.input(io.stdin)
f = io.open(name, "wb")
for i = 1, 2000 do f:write(i, i % 100 == 0 and "\n" or ",") end
f:close()
local n, s = 0, 0
for l in io.lines(name) do n = n + 1
    for d in l:gmatch("%d+") do s = s + d end end
print(n, s)
f = io.open(name)
local cnt = 0
while true do local b = f:read(777) if not b then break end cnt = cnt + #b end
print(cnt)
f:close()
f = io.open(name, "w")
f:write("1 0x10 -5 1e3 .5 abc 7")
f:close()
f = io.open(name)
print(f:read("*n", "*n", "*n", "*n", "*n", "*n"))
f:close()
do local t = io.tmpfile() t:write("tmp") t:seek("set") print(t:read("*a")) end
local p = io.popen("echo from popen; exit 3")
print(p:read("*a"), p:close())
p = io.popen("cat >/dev/null", "w")
print(p:write("x") == p, p:close())
print(pcall(io.popen, "true", "q"))
io.stderr:write("to stderr\n")
print(os.rename(name, name .. "2"), os.remove(name .. "2"), c(select(2,
  os.remove(name .. "2"))))
print(os.getenv("NO_SUCH_VARIABLE_HERE"), type(os.getenv("PATH")),
  type(os.time()), type(os.clock()), type(os.date()), os.time({ year = 2001,
  month = 9, day = 9, hour = 12 }) > 0, os.difftime(10, 4))
print(os.date("!%Y-%m-%d %H:%M:%S", 1e9), os.date("!*t", 86400).day,
  os.date("!*t", 0).isdst, os.date("!%%"))
print(pcall(os.time, {}))
print(pcall(os.date, "*t", "x"))
print(os.execute("exit 5"), os.execute("true"), os.execute() ~= 0)
print(os.setlocale("C"), os.setlocale(nil, "numeric"), os.setlocale("no_such"))
local made = os.tmpname()
print(made:match("^/tmp/lua_") ~= nil, os.remove(made))
print(print == io.write, io.write() == io.stdout,
  io.stdout:write("") == io.stdout)
local old = tostring
tostring = function(x) return "T" .. old(x) end
print(1, "a")
tostring = function() return nil end
local pok, perr = pcall(print, 1)
tostring = old
print(pok, perr)
print(jit.version_num > 20000, jit.os, jit.arch, type(jit.status()),
  type(jit.version))
os.exit(7, true)
