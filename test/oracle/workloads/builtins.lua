-- Every family of builtins, fast paths and fallbacks.
local sink
for round = 1, 4 do
  sink = { type(round), type(nil), type({}), tostring(round), tostring("s"), tostring(1.5), tostring(nil),
    tonumber("12"), tonumber("z", 36), tonumber(3), tonumber("x"), rawget({ 1 }, 1), rawequal(1, 1),
    rawget({ f = print }, "f"), next({}), next({ 1 }), select(2, 1, 2, 3), select(-1, 1, 2), select("#") }
  assert(rawset({}, 1, 2))
  assert(getmetatable("").__index == string)
  assert(getmetatable(setmetatable({}, { __metatable = "locked" })) == "locked")
  sink = getfenv and getfenv(1)
  sink = { math.abs(-1), math.floor(1.5), math.ceil(1.5), math.sqrt(2), math.sin(1), math.cos(1), math.tan(1),
    math.asin(0.5), math.acos(0.5), math.atan(1), math.atan2(1, 2), math.sinh(1), math.cosh(1), math.tanh(1),
    math.exp(1), math.log(2), math.log(8, 2), math.log10(100), math.pow(2, 3), math.fmod(7, 3), math.ldexp(1, 4),
    math.frexp(8), math.modf(1.5), math.min(3, 1, 2), math.max(3, 1, 2), math.random(10), math.deg(1), math.rad(1),
    2 ^ round, round % 3, -7 % 3, 5.5 % 2 }
  math.randomseed(42)
  local bit = require("bit")
  sink = { bit.tobit(1), bit.band(7, 3), bit.bor(1, 2), bit.bxor(1, 3), bit.bnot(0), bit.bswap(1), bit.lshift(1, 3),
    bit.rshift(8, 1), bit.arshift(-8, 1), bit.rol(1, 1), bit.ror(1, 1), bit.tohex(255), bit.band("7", 3, 1, 15) }
  local s = "hello world " .. round
  sink = { s:byte(), s:byte(1, 3), string.char(65), string.char(65, 66), s:sub(2), s:sub(-3, -1), s:sub(5, 1),
    s:reverse(), s:lower(), s:upper(), s:rep(3), s:rep(2, ","), s:len(), s:find("wor", 1, true), s:find("(o)(.)"),
    s:match("%w+"), s:match("(%w+) (%w+)"), s:gsub("o", "0"), s:gsub("%w+", string.upper),
    s:gsub("%w", { h = "H" }), string.format("%d %5.2f %s %q %x %c", 1, 2.5, "x", "y\n", 255, 65) }
  for w in s:gmatch("%a+") do sink = w end
  sink = #string.dump(function() return 1 end)
  local t = { 5, 3, 1, 4, 2 }
  table.sort(t); table.sort(t, function(a, b) return a > b end)
  table.insert(t, 6); table.insert(t, 1, 0); table.remove(t); table.remove(t, 1)
  sink = { table.concat(t, ","), table.maxn(t), unpack(t) }
  for k, v in pairs(t) do sink = v end
  for i, v in ipairs(t) do sink = v end
  table.foreach(t, function(k, v) sink = k end)
  table.foreachi(t, function(k, v) sink = v end)
  local ok, tnew = pcall(require, "table.new"); if ok then sink = tnew(4, 4) end
  local ok, tclear = pcall(require, "table.clear"); if ok then tclear(t) end
  sink = { os.time(), os.clock(), os.date("%Y"), os.getenv("HOME"), os.tmpname and 1 }
  sink = { debug.getinfo(1, "nSl"), debug.traceback("x"), debug.getlocal(1, 1), debug.getregistry() }
  sink = load("return 1 + 1")(); sink = loadstring("local a = ... return a")(3)
  sink = load((function() local i = 0 return function() i = i + 1 return ({ "return ", "5", nil })[i] end end)())()
  assert(not load("syntax error here"))
  local f = assert(io.open("/dev/null", "w")); f:write("x", 1, 2.5); f:flush(); f:seek("set", 0); f:close()
  for l in io.lines("/dev/null") do sink = l end
  sink = collectgarbage("count"); collectgarbage("step", 10); collectgarbage()
  sink = { pcall(string.rep), pcall(string.char, 999), pcall(setmetatable, 1), pcall(ipairs), pcall(next, {}, 1) }
  local np = newproxy(true); getmetatable(np).__len = function() return 3 end; sink = #np
  sink = package.loaded.string; package.preload.mymod = function(n) return { name = n } end
  package.loaded.mymod = nil; sink = require("mymod").name
  local ok, buffer = pcall(require, "string.buffer")
  if ok then local b = buffer.new(); b:put("a", 1):putf("%d", 2); sink = b:tostring() .. b:get(2); sink = buffer.decode(buffer.encode({ 1, "x", { true } })) end
end
