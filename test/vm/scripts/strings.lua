-- The string library, whole.
local function show(...) local t = {} for i = 1, select("#", ...) do
  t[i] = ("%q"):format(tostring((select(i, ...)))) end
  print(table.concat(t, " ")) end

print(("abc"):byte(), ("abc"):byte(1, -1))
print(("abc"):byte(10), string.char(), string.char(72, 105))
print(("hello"):sub(2, 3), ("hello"):sub(-3), ("hello"):sub(2),
  ("hello"):sub(0), ("hello"):sub(10), ("hello"):sub(3, 2), ("x"):sub(-100,
  100))
print(("MiXed"):lower(), ("MiXed"):upper(), ("abc"):reverse(), (""):reverse(),
  ("abc"):len(), #"")
print(("ab"):rep(3), ("ab"):rep(0), ("ab"):rep(-1), ("ab"):rep(3, ","),
  ("a"):rep(1, ","), (""):rep(100), #("x"):rep(100000))
-- find, match, gmatch, gsub
show(("hello world"):find("o w"))
show(("hello"):find("l", 1, true))
show(("hello"):find("xyz"))
show(("hello"):find(""))
show(("hello"):find("", 10))
show(("hello"):find("", 6))
show(("a.b"):find(".", 2, true))
show(("hello"):find("(l)(l)"))
show(("hello"):find("l+", -2))
show(("key = value"):match("^(%w+)%s*=%s*(%w+)$"))
show(("2024-01-02"):match("(%d+)-(%d+)-(%d+)")) show(("x"):match("()")) show(("abc"):match(".-c")) show(("[[x]]"):match("%[%[(.*)%]%]"))
show(("f(a(b)c)d"):match("%b()"))
show(("THE (quick) fox"):find("%((%a+)%)"))
show(("abc"):match("^b"))
show(("a\0b"):match("%z"))
show(("THE (quick)"):gsub("%f[%a]%a+", "<%0>"))
show(("hello"):gsub("l", "L"))
show(("hello"):gsub("l", "L", 1))
show(("hello"):gsub("", "-"))
show(("abc"):gsub("%w", "%0%0"))
show(("abc"):gsub("%w", "%%"))
show(("hello world"):gsub("(%w+) (%w+)", "%2 %1"))
show(("$a $b $c"):gsub("%$(%w)", { a = 1, b = "two", c = false }))
show(("abc"):gsub(".", function(c) if c == "b" then
    return nil elseif c == "c" then return false end return c:upper() end))
show(("x y"):gsub("(%w)(.?)", function(...)
  return select("#", ...) .. table.concat({ ... }, "|") end))
show(("abc"):gsub("b*", "x"))
show((" trim "):gsub("^%s*(.-)%s*$", "%1"))
show(("%a%d"):gsub("%%(.)", "[%1]"))
show(("äöü"):gsub("[\128-\255]", "?"))
show(("a-b]c^d"):gsub("[%-%]^]", "_"))
show(("abc123"):gsub("[^%d]", ""))
show(("A1 b2"):gsub("%u%d", "X"):gsub("%l", "y"))
for k, v in ("a=1, b=2, c=3"):gmatch("(%w)=(%w)") do io.write(k, v, " ") end
print()
for w in ("one two  three"):gmatch("%a+") do io.write(w, ".") end print()
for p in ("abc"):gmatch("()") do io.write(p, " ") end print()
for a in ("aXbXc"):gmatch("[^X]*") do io.write("<", a, ">") end print()
for _, pat in ipairs { "%", "[a", "(a", "a)", "%b", "%f", "(()", "%1", "[%",
  "[a-", ("(x"):rep(40), "^*$", "a**", "[]", "[]]", "%g+", "%", "(.-)%1" } do
  print(pat:sub(1, 10), pcall(string.find, "abca", pat))
end
print(pcall(string.gsub, "x", "x", "%2"))
print(pcall(string.gsub, "x", "x", 5))
print(pcall(string.gsub, "x", "x", true))
print(pcall(string.gsub, "x", "x", function() return {} end))
print(pcall(string.rep))
print(pcall(string.find, "a"))
print(pcall(string.match, ("a"):rep(12), (".-"):rep(4) .. "b"))
print(#(("a"):rep(5000)):match("^(a-)$"), (("a"):rep(1000) .. "b"):find(".-b"),
  pcall(string.match, ("a"):rep(300000), ("(a)"):rep(33)))
-- format
for _, f in ipairs { "%d", "%5d", "%-5d|", "%05d", "%+d", "% d", "%i", "%u",
  "%x", "%X", "%#x", "%o", "%c", "%e", "%.3e", "%E", "%f", "%.0f", "%10.2f",
  "%g", "%G", "%.10g", "%a", "%s", "%q", "%10s|", "%-10s|", "%.2s", "%5.1f",
  "%.14g", "%.20f", "%99d" } do
  for _, v in ipairs { 65, -7, 1.5, 2 ^ 40 } do
    local ok, r = pcall(string.format, f, v)
    io.write(f, "=", tostring(r), " ; ") end
  print()
end
print(("%s %s %s %s"):format(nil, true, "s", 1.25), ("%%"):format(),
  ("%q"):format("a\n\0\r\"\\\1\0012"), ("%5s%5s"):format("a", "b"))
print(("%s"):format(setmetatable({}, { __tostring = function()
  return "meta" end })), pcall(string.format, "%d", "x"))
print(pcall(string.format, "%y", 1))
print(pcall(string.format, "%s"))
print(pcall(string.format, "%0123d", 1))
print(("%d %x"):format("10", "0x1F"), ("%s"):format("emb\0ed"):byte(4),
  pcall(string.format, "%.3q", "x"))
print(0 / 0 ~= 0 / 0, ("%f %f"):format(1 / 0, -1 / 0), ("%d"):format(3.99),
  ("%x"):format(-1), ("%5.1s|"):format("abc"), ("%g %g"):format(1e300, 1e-300),
  ("%i"):format(-0.5))
print(1e15, 1e16, 1e100, 0.1, 1 / 3, -0, 123456789012, 2 ^ 53, 2 ^ 63, -2 ^ 63,
  1e-5, 5e-324, 1.7976931348623157e308)
print(tostring(print):gsub("0x%x+", "ADDR"), tostring(string.format),
  tostring(math.sin), tostring(pcall), tostring(io.write))
print(tonumber("10"), tonumber(" 0x1p4 "), tonumber("1e1"), tonumber("z", 36),
  tonumber("ff", 16), tonumber("8", 8), tonumber("1 2"), tonumber(""),
  tonumber("0x"), tonumber("1e"), tonumber("inf"), tonumber("nan"),
  tonumber("7fffffffffffffff", 16), tonumber("-11", 2), tonumber("1.5e+3"),
  (pcall(tonumber)))
-- comparison, concatenation, coercion
print("a" < "b", "a" < "B", "" < "a", "a\0b" < "a\0c", "abc" < "abd",
  "Z" <= "Z", "10" < "9", "a" > "aa", "a" == "a\0")
print(1 .. 2, "1" + 2, "0x10" * 1, 10 .. "", -1 .. "", 1.5 .. "|", "3" ^ 2,
  -"2", "7" % 4, 2 ^ 53 .. "")
local parts = {}
for i = 1, 300 do parts[#parts + 1] = i .. ":" .. (i * 0.5) .. (i % 2 == 0 and
  "e" or "o") end
print(#table.concat(parts), parts[300])
local acc = ""
for i = 1, 300 do acc = acc .. string.char(65 + i % 26) end
print(acc:sub(-26), #acc)
-- interning and hashes: long strings that differ in one place
local set, n = {}, 0
for i = 1, 500 do local s = ("p"):rep(i % 200) .. i .. ("s"):rep(200 - i % 200)
    if not set[s] then set[s] = i n = n + 1 end end
local same = 0
for s, i in pairs(set) do if s == ("p"):rep(i % 200) .. i ..
    ("s"):rep(200 - i % 200) then same = same + 1 end end
print(n, same)
-- everything at once, hot
local h = 0
for i = 1, 400 do local s = ("%d-%s"):format(i, ("x"):rep(i % 5))
  h = (h * 31 + s:byte(-1) + #s:upper():lower():reverse():sub(2,
  -2) + (s:find("-", 1, true) or 0) + #s:gsub("%d",
  "d") + (tonumber(s:match("^%d+")))) % 1000003 end
print(h)
-- string.buffer
local okb, buffer = pcall(require, "string.buffer")
if okb and type(buffer) == "table" then
  local b = buffer.new()
  b:put("a", 1, 2.5, " "):putf("%05.1f|%s", 3.14159, "x")
  print(tostring(b), #b, b:get(3), b:get(2, 2), tostring(b))
  b:reset()
  print(#b, b:get())
  for i = 1, 300 do b:put(i, ",") end
  print(#b, (tostring(b):sub(-8)))
  b:skip(#b - 8)
  print(b:tostring())
  b:set("set text"):skip(4)
  print(b .. "", #b)
  b:free()
  print(#b)
  local v = { 1, "two", { x = { true, false }, y = 2.5 }, [10] = "ten" }
  local e = buffer.encode(v)
  local d = buffer.decode(e)
  print(#e, d[1], d[2], d[3].x[1], d[3].x[2], d[3].y, d[10])
  print(pcall(buffer.encode, print))
  print(pcall(buffer.decode, "\255\254"))
  print(pcall(buffer.decode, e:sub(1, 5)))
  print(pcall(buffer.new, {}, 1))
  local dict = buffer.new({ dict = { "key" } })
  print(dict:encode({ key = 1 }):get() ~= buffer.encode({ key = 1 }))
  local loop = {}
  loop[1] = loop
  print(pcall(buffer.encode, loop))
else print("no string.buffer") end
print(pcall(string.dump, print)) print(#string.dump(function() end) > 0)
