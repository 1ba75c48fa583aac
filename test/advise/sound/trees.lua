-- Trees are what the program is for: each lives until it is dropped as a whole.
local function tree(depth)
  if depth == 0 then return {} end
  return {tree(depth - 1), tree(depth - 1)}
end
local function size(t)
  if t[1] then return 1 + size(t[1]) + size(t[2]) end
  return 1
end
local n = 0
for i = 1, 120 do n = n + size(tree(14)) end
print(n)
