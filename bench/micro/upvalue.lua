-- Micro-benchmark: stores of fresh strings and tables into closed upvalues.
local size = tonumber(arg[1]) or 10
local set_string, set_table, get
do
  local s, t = "", {}
  set_string = function(v)
    s = v
  end
  set_table = function(v)
    t = v
  end
  get = function()
    return #s + #t
  end
end
local texts, lists = {}, {}
for i = 1, 64 do
  texts[i] = ("x"):rep(i)
  lists[i] = { i }
end
local sum = 0
for i = 1, size * 10000 do
  set_string(texts[i % 64 + 1])
  set_table(i % 16 == 0 and { i } or lists[i % 64 + 1])
  sum = sum + get()
end
print(sum)
