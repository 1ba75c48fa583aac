#!/bin/sh
# neovim without a screen runs a Lua script that uses the JIT compiler, the FFI,
# buffers and files.
. "$(dirname "$0")/lib.sh"
need neovim

cat > "$tmp/script.lua" << 'EOF'
local out = vim.fn.getenv("OUT")
local ffi = require("ffi")
ffi.cdef("int getpid(void); size_t strlen(const char *);")
local sum = 0
for i = 1, 1e6 do sum = sum + i % 7 end
vim.api.nvim_buf_set_lines(0, 0, -1, true, { "second", "first", "third" })
vim.cmd("sort")
local lines = vim.api.nvim_buf_get_lines(0, 0, -1, true)
local timer_ran = false
vim.defer_fn(function() timer_ran = true end, 10)
assert(vim.wait(2000, function() return timer_ran end))
local maps = io.open("/proc/self/maps"):read("*a")
local f = assert(io.open(out, "w"))
f:write(table.concat(lines, ","), " ", sum, " ", tonumber(ffi.C.strlen("four")),
  " ", vim.inspect({ 1, "x" }), " ", type(misc), " ", tostring(jit.status()), "\n")
f:close()
f = assert(io.open(out .. ".maps", "w"))
f:write(maps)
f:close()
vim.cmd("qall!")
EOF
runs "$tmp/nvim.log" env HOME="$tmp" OUT="$tmp/out" \
  nvim --headless -u NONE -i NONE -n -c "luafile $tmp/script.lua"
same result 'first,second,third 2999998 4 { 1, "x" } table true' \
  "$(cat "$tmp/out")"
same library "$library" \
  "$(awk '$6 ~ /libluajit/ { print $6 }' "$tmp/out.maps" | sort -u)"
