-- Primes below two million, sieved in an FFI array: a numeric loop that the
-- JIT compiler turns into machine code.
local ffi = require("ffi")
local LIMIT = 2000000

local composite = ffi.new("uint8_t[?]", LIMIT)
local count, last = 0, 0
for i = 2, LIMIT - 1 do
  if composite[i] == 0 then
    count, last = count + 1, i
    for j = i * i, LIMIT - 1, i do
      composite[j] = 1
    end
  end
end
print(count .. " primes below " .. LIMIT .. ", the last is " .. last)
assert(count == 148933 and last == 1999993)
