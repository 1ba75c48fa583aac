local out = io.open("/dev/null", "w")
local bytes = 0
out:setvbuf("full", 65536)

local function log(id, text)
  out:write(text, " ", id, "\n")
  bytes = bytes + #text + 2
end

local function flush()
  out:flush()
end

for i = 1, 300000 do log(i, "request") end
flush()
print(bytes)
