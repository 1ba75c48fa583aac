-- Loops in loops, of all kinds.
local function inner(n)
  local s = 0
  for j = 1, n do
    s = s + j
  end
  return s
end
local t = {}
for i = 1, 20 do
  t[i] = i
end
local s = 0
for i = 1, 80 do
  s = s + inner(10)
  for _, v in ipairs(t) do
    s = s + v
  end
  for _, v in pairs(t) do
    s = s + v
  end
  local k = 0
  while k < 8 do
    k = k + 1
    s = s + k
  end
  repeat
    k = k - 1
  until k == 0
end
