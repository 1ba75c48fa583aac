local function check(n)
  if n % 3 == 0 then return nil, "not allowed" end
  return n
end

local function valid(n)
  return check(n) ~= nil
end

local good, bad = 0, 0
for i = 1, 500000 do
  if valid(i) then good = good + 1 else bad = bad + 1 end
end
print(good, bad)
