-- Further Lua states, made through the C API: life and death, calls between
-- them, and allocators that fail at each allocation in turn.
local ffi = require("ffi") local C = ffi.C
ffi.cdef [[ typedef struct lua_State lua_State; typedef void *(*lua_Alloc)(void *, void *, size_t, size_t); lua_State *luaL_newstate(void); lua_State *lua_newstate(lua_Alloc, void *); void luaL_openlibs(lua_State *); void lua_close(lua_State *); int luaL_loadstring(lua_State *, const char *); int lua_pcall(lua_State *, int, int, int); const char *lua_tolstring(lua_State *, int, size_t *); void lua_settop(lua_State *, int); int lua_gettop(lua_State *); double lua_tonumber(lua_State *, int); lua_State *lua_newthread(lua_State *); int lua_resume(lua_State *, int); int lua_status(lua_State *); void lua_pushnumber(lua_State *, double); void lua_xmove(lua_State *, lua_State *, int); int lua_gc(lua_State *, int, int); void lua_createtable(lua_State *, int, int); void lua_setfield(lua_State *, int, const char *); void lua_getfield(lua_State *, int, const char *); int lua_type(lua_State *, int); int lua_next(lua_State *, int); int lua_checkstack(lua_State *, int); void lua_pushstring(lua_State *, const char *); void lua_concat(lua_State *, int); int lua_equal(lua_State *, int, int); int lua_lessthan(lua_State *, int, int); size_t lua_objlen(lua_State *, int); void lua_insert(lua_State *, int); void lua_remove(lua_State *, int); void lua_replace(lua_State *, int); void lua_pushvalue(lua_State *, int); int lua_cpcall(lua_State *, int (*)(lua_State *), void *); int luaopen_base(lua_State *); int luaopen_jit(lua_State *); void *realloc(void *, size_t); void free(void *); ]]
local function str(L, i) local p = C.lua_tolstring(L, i, nil)
  return p ~= nil and ffi.string(p) or "nil" end
local function run(L, src) C.lua_settop(L, 0)
  local rc = C.luaL_loadstring(L, src)
    if rc == 0 then rc = C.lua_pcall(L, 0, 1, 0) end return rc, str(L, -1) end
jit.off(run, true)
jit.off(str, true)
for i = 1, 20 do local L = C.luaL_newstate() C.luaL_openlibs(L)
  local rc, v = run(L,
  "local s = 0 for i = 1, 300 do s = s + i end local t = {} for i = 1, 50 do t[i] = coroutine.wrap(function() return i end)() end return s .. ':' .. #t")
    if i % 5 == 0 then print(i, rc, v) end
    if i == 7 then print(run(L, "return x +")) print(run(L, "error('inner')"))
    print(run(L, "error({})")) print(run(L,
    "local function f() return 1 + f() end return f()"))
    print(run(L, "return #require('string').rep('x', 1000)")) end
  C.lua_close(L) end
local L = C.luaL_newstate()
C.luaL_openlibs(L)
C.lua_settop(L, 0)
for i = 1, 5 do C.lua_pushnumber(L, i) end
C.lua_insert(L, 1)
C.lua_remove(L, 2)
C.lua_pushvalue(L, 1)
C.lua_replace(L, 2)
print(C.lua_gettop(L), C.lua_tonumber(L, 1), C.lua_tonumber(L, 2),
  C.lua_tonumber(L, 3))
C.lua_pushstring(L, "cat")
C.lua_pushnumber(L, 5)
C.lua_concat(L, 2)
print(str(L, -1), C.lua_type(L, -1), C.lua_equal(L, 1, 2), C.lua_lessthan(L, 3,
  1), tonumber(C.lua_objlen(L, -1)))
C.lua_createtable(L, 3, 3)
C.lua_pushnumber(L, 7)
C.lua_setfield(L, -2, "f")
C.lua_getfield(L, -1, "f")
print(C.lua_tonumber(L, -1))
print(C.lua_checkstack(L, 5000), C.lua_checkstack(L, 1e6))
local T = C.lua_newthread(L)
print(C.luaL_loadstring(T,
  "local a = ... local b = coroutine.yield(a * 2, 'y') for i = 1, 100 do b = b + coroutine.yield(b) end return b, 'end'"))
C.lua_pushnumber(T, 21)
print(C.lua_resume(T, 1), C.lua_status(T), C.lua_gettop(T), C.lua_tonumber(T,
  1), str(T, 2))
C.lua_settop(T, 0)
local rc
for i = 1, 101 do C.lua_pushnumber(T, i) rc = C.lua_resume(T, 1)
    if rc == 1 then C.lua_settop(T, 0) end end
print(rc, C.lua_gettop(T), C.lua_tonumber(T, 1), str(T, 2))
C.lua_settop(T, 0)
C.luaL_loadstring(T, "error('in thread')")
print(C.lua_resume(T, 0), str(T, -1))
print(C.lua_gc(L, 2, 0), C.lua_gc(L, 3, 0) > 0, C.lua_gc(L, 6, 100),
  C.lua_gc(L, 7, 200))
C.lua_close(L)
-- Nested states: a state run by a state run by a state.
local nest = [[local depth = ... or DEPTH if depth == 0 then return 'leaf' end local ffi = require('ffi') pcall(ffi.cdef, 'typedef struct lua_State lua_State; lua_State *luaL_newstate(void); void luaL_openlibs(lua_State *); void lua_close(lua_State *); int luaL_loadstring(lua_State *, const char *); int lua_pcall(lua_State *, int, int, int); const char *lua_tolstring(lua_State *, int, size_t *);') jit.off(true, true) local C = ffi.C local L = C.luaL_newstate() C.luaL_openlibs(L) C.luaL_loadstring(L, 'DEPTH = ' .. (depth - 1) .. ' SRC = ' .. ('%q'):format(SRC) .. ' return loadstring(SRC)()') local rc = C.lua_pcall(L, 0, 1, 0) local r = depth .. '>' .. rc .. ffi.string(C.lua_tolstring(L, -1, nil)) C.lua_close(L) return r]] SRC = nest DEPTH = 4 print(loadstring(nest)())
collectgarbage("setpause", 200) -- 600 states are enough work as it is
local n_step = 3
-- Allocation n fails and all after it; then only the n-th fails. Of those that
-- make the state itself only the first: LuaJIT of 2023 does not survive others.
local budget, single = 0, false
local function alloc(_, p, osize, nsize) if nsize == 0 then C.free(p)
    return nil end if nsize > osize then budget = budget - 1
      if budget == 0 or (budget < 0 and not single) then return nil end end
  return C.realloc(p, nsize) end
jit.off(alloc, true)
local cb = ffi.cast("lua_Alloc", alloc)
local openbase, openjit = ffi.cast("int (*)(lua_State *)", C.luaopen_base),
  ffi.cast("int (*)(lua_State *)", C.luaopen_jit)
local src = [[local t = {} for i = 1, 90 do t[i] = {i} t['k' .. i] = function() return t[i] end end local function f(n) if n == 0 then return 0 end return 1 + f(n - 1) end local s = 0 for i = 1, 90 do s = s + t['k' .. i]()[1] end local c = loadstring('local a = 1 return function() return a end') return tostring(s + f(300) + c()())]]
local outcome = function(n, one) budget, single = 0x7fffffff, one
  local L2 = nil budget = n == 1 and 1 or 0x7fffffff
  L2 = C.lua_newstate(cb, nil) if L2 == nil then return "no state" end
  budget = n - 1 local rc = C.lua_cpcall(L2, openbase, nil)
    if rc == 0 then rc = C.lua_cpcall(L2, openjit, nil) end local v = ""
    if rc == 0 then rc, v = run(L2, src) end budget = 0x7fffffff
  C.lua_close(L2) return rc .. " " .. tostring(v):gsub("^.-: ", "") end
jit.off(outcome, true)
if arg[1] ~= "no-oom" then for _, one in ipairs { false, true } do
    local seen, names = {}, {} for n = 1, 900, n_step do local o = outcome(n, one)
        if not seen[o] then seen[o] = 0 names[#names + 1] = o end
      seen[o] = seen[o] + 1 end table.sort(names)
    print(one, table.concat(names, " | ")) end end
cb:free()
