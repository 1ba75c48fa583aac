#!/bin/sh
# dnsjit, whose scripts and modules all run in LuaJIT and use the FFI: its
# clock, its table of objects, and tables and strings of our own.
. "$(dirname "$0")/lib.sh"
need dnsjit

cat > "$tmp/script.lua" << 'EOF'
local ffi = require("ffi")
local clock = require("dnsjit.lib.clock")
local object = require("dnsjit.core.objects")
local t = {}
for i = 1, 1000 do t[i] = ("%d.example"):format(i) end
table.sort(t)
local start = clock:monotonic()
local sum = 0
for i = 1, 1e6 do sum = sum + i % 5 end
assert(clock:monotonic() >= start)
print("result", t[1], #t, sum, type(object), type(misc), (jit.status()))
for path in io.open("/proc/self/maps"):read("*a"):gmatch("%S*libluajit%S*") do
  mapped = path
end
print("mapped " .. mapped)
EOF
runs "$tmp/dnsjit.log" dnsjit "$tmp/script.lua"
same mapped "mapped $library" "$(grep '^mapped' "$tmp/dnsjit.log")"
same result 'result 1.example 1000 2000000 table table true' \
  "$(grep '^result' "$tmp/dnsjit.log" | tr '\t' ' ')"
