#!/bin/sh
# sysbench runs a test written in Lua on four threads with a Lua state each:
# prime numbers, strings and the FFI.
. "$(dirname "$0")/lib.sh"
need sysbench

cat > "$tmp/primes.lua" << 'EOF'
local ffi = require("ffi")
ffi.cdef("int abs(int);")
sysbench.cmdline.options = { limit = { "primes below this", 500 } }
local function primes(limit)
  local crossed, count = {}, 0
  for i = 2, limit do
    if not crossed[i] then
      count = count + 1
      for j = i * i, limit, i do crossed[j] = true end
    end
  end
  return count
end
function thread_init()
  text = ("x"):rep(sysbench.tid + 1)
  if sysbench.tid == 0 then
    local maps = io.open("/proc/self/maps"):read("*a")
    for path in maps:gmatch("%S*libluajit%S*") do mapped = path end
    print("mapped " .. tostring(mapped))
    print("misc " .. type(misc) .. " jit " .. tostring(jit.status()))
  end
end
function event()
  local n = primes(sysbench.opt.limit)
  local r = sysbench.rand.uniform(1, 100)
  if n ~= 95 or ffi.C.abs(-n) ~= n or r < 1 or r > 100 or
    #text:gsub("x", "yy") ~= 2 * (sysbench.tid + 1) then
    error("wrong: " .. n)
  end
end
function thread_done() -- One call, because other threads write, too.
  io.stdout:write("thread " .. sysbench.tid .. " done\n")
end
EOF
runs "$tmp/sysbench.log" sysbench --threads=4 --events=2003 --time=0 \
  "$tmp/primes.lua" run
same mapped "mapped $library" "$(grep '^mapped' "$tmp/sysbench.log")"
same state 'misc table jit true' "$(grep '^misc' "$tmp/sysbench.log")"
same threads 4 "$(grep -c '^thread . done' "$tmp/sysbench.log")"
same events 2003 \
  "$(sed -n 's/.*total number of events: *//p' "$tmp/sysbench.log")"
# A test of its own that is written in C and runs beside a Lua state.
runs "$tmp/cpu.log" sysbench cpu --events=101 --time=0 run
same 'cpu events' 101 \
  "$(sed -n 's/.*total number of events: *//p' "$tmp/cpu.log")"
