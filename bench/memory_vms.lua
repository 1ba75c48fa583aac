-- How much memory a recorded VM takes, for bench/memory.sh:
--   luajit memory_vms.lua MODE FILE      MODE: plain, every, sample
-- Makes 40 VMs in turn and prints for each by how many KiB the process's private
-- resident memory grew.
local mode, path = ...
local ffi = require "ffi"
ffi.cdef [[
  void *luaL_newstate(void);
  void luaL_openlibs(void *L);
  void lua_close(void *L);
]]
local function private()
  local text = assert(io.open("/proc/self/status")):read("*a")
  return tonumber(text:match("RssAnon:%s*(%d+)"))
end
if mode ~= "plain" then
  assert(misc.memprof.start {
    path = path, vms = "all", every = mode == "every" or nil,
    sample = mode == "sample" and 512 * 1024 or nil
  })
end
local vms = {}
local function vm()
  vms[#vms + 1] = ffi.C.luaL_newstate()
  ffi.C.luaL_openlibs(vms[#vms])
end
private()
for _ = 1, 40 do
  local before = private()
  vm()
  print(private() - before)
end
for _, L in ipairs(vms) do ffi.C.lua_close(L) end
if mode ~= "plain" then assert(misc.memprof.stop()) end
