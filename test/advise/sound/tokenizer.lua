local text = ("local x1 = 42 + foo(bar, 7) -- done\n"):rep(60)
local byte = string.byte

local function tokens(s)
  local count, i, n = 0, 1, #s
  while i <= n do
    local c = byte(s, i)
    if c == 32 or c == 10 then
      i = i + 1
    elseif c >= 48 and c <= 57 then
      repeat i = i + 1 until i > n or byte(s, i) < 48 or byte(s, i) > 57
      count = count + 1
    elseif c >= 97 and c <= 122 then
      repeat i = i + 1 until i > n or byte(s, i) < 48 or byte(s, i) > 122
      count = count + 1
    else
      i = i + 1
      count = count + 1
    end
  end
  return count
end

local sum = 0
for round = 1, 24000 do sum = sum + tokens(text) end
print(sum)
