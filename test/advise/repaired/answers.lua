local lines = {}
for i = 1, 500 do
  lines[i] = ('10.0.0.%d - - "GET /page/%d HTTP/1.1" %d %d')
    :format(i % 250, i, i % 7 == 0 and 404 or 200, i * 13)
end

local function status(line)
  local _, last = line:find('HTTP/1.1" ', 1, true)
  return line:sub(last + 1, last + 3)
end

local count = {}
for round = 1, 1500 do
  for i = 1, #lines do
    local s = status(lines[i])
    count[s] = (count[s] or 0) + 1
  end
end
print(count["200"], count["404"])
