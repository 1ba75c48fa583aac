-- pcall in compiled code.
local function inner(x)
  local y = x + 1
  return y * 2
end
local function outer(x)
  local ok, v = pcall(inner, x)
  if not ok then
    return 0
  end
  return v
end
local s = 0
for i = 1, 600 do
  s = s + outer(i)
end
