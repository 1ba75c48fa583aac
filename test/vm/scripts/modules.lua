-- require, package.loaders, preload, module, searchpath, loadlib.
package.preload.pre = function(...) print("preload", ...)
  return { v = "pre" } end
print(require("pre").v, require("pre") == require("pre"), package.loaded.pre.v)
package.preload.none = function() end
print(require("none"), package.loaded.none)
package.preload.bad = function() error("bad module", 0) end
print(pcall(require, "bad"))
package.preload.looped = function() return require("looped") end
print(pcall(require, "looped"))
package.preload.setself = function(n) package.loaded[n] = "self" end
print(require("setself"))
package.preload.f = function() return false end
print(require("f"), package.loaded.f)
local dir = os.tmpname()
os.remove(dir)
local name = dir:match("[^/]*$")
local base = dir:match("^(.*)/")
local path = base .. "/?.lua"
package.path = path
package.cpath = base .. "/?.so"
local function write(n, s) local h = assert(io.open(base .. "/" .. n .. ".lua",
  "w")) h:write(s) h:close() end
local function clean(s) return (tostring(s):gsub(base:gsub("%W", "%%%0"),
  "BASE"):gsub(name, "NAME")) end
write(name, "local n = ... return { name = n, x = 42 }")
print(require(name).x, clean(require(name).name))
package.loaded[name] = nil
write(name, "syntax error")
print(clean(select(2, pcall(require, name))))
package.loaded[name] = nil
write(name, "error('at load')")
print(clean(select(2, pcall(require, name))))
package.loaded[name] = nil
write(name,
  "module(..., package.seeall) function f() return type(print) end w = 3")
print(require(name).f(), package.loaded[name].w,
  clean(package.loaded[name]._NAME), _G[name] and _G[name].w)
os.remove(base .. "/" .. name .. ".lua")
print(clean(select(2, pcall(require, "no.such.mod"))))
print(package.searchpath and clean(select(2, package.searchpath("a.b",
  "./?.x;BASE/?.y"))))
print(pcall(package.loadlib, "/nonexistent/lib.so", "f"))
print(package.config:gsub("\n", "|"))
print(#package.loaders, type(package.loaders[1]))
table.insert(package.loaders, 2, function(n) if n == "virtual" then
    return function(...) return { "virtual", ... } end end
  return "\n\tnot virtual" end)
print(require("virtual")[2])
print((clean(select(2, pcall(require, "absent"))):gsub("0x%x+", "")))
package.loaders[2] = function() error("loader fails", 0) end
print(pcall(require, "other"))
local save = package.loaders
package.loaders = nil
print(pcall(require, "x1"))
package.loaders = save
package.path = nil
table.remove(save, 2)
print(pcall(require, "x2"))
package.path = path
print(pcall(require))
module("made.up.name", package.seeall)
v = 1
print(_NAME, _PACKAGE, made == nil, _M.v)
