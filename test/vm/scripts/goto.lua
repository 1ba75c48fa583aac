-- goto: forward, backward, continue, nested breaks, closures in loops.

for i = 1, 6 do
  if i % 2 == 0 then goto continue end
  io.write(i, " ")
  ::continue::
end
print()

do
  local i = 1
  ::top::
  if i <= 300 then
    i = i + 1
    goto top
  end
  print("backward", i)
end

for i = 1, 3 do
  for j = 1, 3 do
    if i * j == 4 then goto done end
    io.write(i, ":", j, " ")
  end
end
::done::
print()

-- Each pass of a goto loop has fresh locals: closures must not share them.
local fns = {}
do
  local k = 0
  ::again::
  local fresh = k
  fns[#fns + 1] = function() fresh = fresh + 1; return fresh end
  k = k + 1
  if k < 5 then goto again end
end
for i = 1, #fns do io.write(fns[i](), " ", fns[i](), " ") end
print()

local caught = {}
for i = 1, 200 do
  local x = i
  if i % 3 == 0 then goto next end
  caught[#caught + 1] = function() return x end
  ::next::
end
local sum = 0
for i = 1, #caught do sum = sum + caught[i]() end
print(#caught, sum)

-- A state machine of gotos.
local function machine(s)
  local i, words = 1, 0
  ::space::
  if i > #s then goto stop end
  if s:sub(i, i) ~= " " then words = words + 1; goto word end
  i = i + 1
  goto space
  ::word::
  if i > #s then goto stop end
  if s:sub(i, i) == " " then goto space end
  i = i + 1
  goto word
  ::stop::
  return words
end
print(machine("  a few words  here "), machine(""), machine(("w "):rep(200)))

-- while/repeat with break and goto out of a nested closure scope.
local n = 0
while true do
  n = n + 1
  repeat
    if n > 50 then goto out end
    local f = function() return n end
    if f() % 2 == 0 then break end
    n = n + 1
  until n > 1000
end
::out::
print("n", n)

-- The loader's complaints.
for _, src in ipairs {
  "goto nowhere", "::a:: ::a::", "goto l; local x; ::l:: print(x)",
  "do ::in_:: end goto in_", "break", "for i=1,2 do end break",
  "repeat if x then goto c end local y; ::c:: until y", "goto = 1",
  "local goto_ = 1 return goto_", "::l1:: goto l1x",
} do
  local f, err = loadstring(src, "=src")
  print(src, f and "ok" or err)
end
