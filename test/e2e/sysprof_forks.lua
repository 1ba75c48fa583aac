-- Forks repeatedly while the unwind tables of many libraries are being made:
-- each child must record and end. Usage: sysprof_forks.lua PATH
local ffi = require("ffi")
ffi.cdef "int fork(void); int waitpid(int, int *, int);"
local loaded = 0
for _, name in ipairs { "libdw.so.1", "libunwind.so.8", "libstdc++.so.6",
  "libcurl.so.4", "libcurl-gnutls.so.4", "libcrypto.so.3", "libpython3.11.so.1.0",
  "libicui18n.so.72", "libperl.so.5.36" } do
  loaded = loaded + (pcall(ffi.load, name) and 1 or 0)
end
assert(loaded > 0 or os.getenv("LJP_LIBC") == "musl",
  "none of these libraries is installed")
local keep
local function work(n)
  for i = 1, n do keep = { tostring(i) } end
end
assert(misc.profile.start{path = arg[1], fork = "follow", flush = 10,
  memory = {every = true}, cpu = {interval = 0.1, max_overhead = 0}})
local children = {}
for i = 1, 30 do
  work(100)
  children[i] = ffi.C.fork()
  if children[i] == 0 then
    work(300)
    os.exit(misc.profile.stop() and 7 or 1)
  end
end
local status = ffi.new("int[1]")
for i, child in ipairs(children) do
  ffi.C.waitpid(child, status, 0)
  assert(status[0] == 7 * 256, "child " .. i .. ": status " .. status[0])
end
assert(misc.profile.stop())
