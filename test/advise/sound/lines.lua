-- Writes a file through a buffer, and reads it by lines and by blocks.
local name = os.tmpname()
local out = assert(io.open(name, "w"))
out:setvbuf("full", 65536)
for i = 1, 30000 do out:write("line ", i, " of the file, with some text\n") end
out:close()

local bytes = 0
for round = 1, 20 do
  for line in io.lines(name) do bytes = bytes + #line + 1 end
end
for round = 1, 50 do -- too few for the compiler, which would give up
  local input = assert(io.open(name))
  for block in function() return input:read(65536) end do
    bytes = bytes + #block
  end
  input:close()
end
os.remove(name)
print(bytes)
