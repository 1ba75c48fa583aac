-- growth_time.lua COMMAND...: runs it, and prints the CPU seconds that it took.
local ffi = require("ffi")
ffi.cdef [[
  struct ljp_usage { long user_s, user_us, system_s, system_us, rest[16]; };
  int getrusage(int who, struct ljp_usage *usage);
]]
local words = {}
for i = 1, #arg do
  words[i] = "'" .. arg[i] .. "'"
end
assert(os.execute(table.concat(words, " ") .. " > /dev/null") == 0, "it failed")
local u = ffi.new("struct ljp_usage")
assert(ffi.C.getrusage(-1, u) == 0) -- RUSAGE_CHILDREN
print(("%.4f"):format(tonumber(u.user_s + u.system_s)
  + tonumber(u.user_us + u.system_us) / 1e6))
