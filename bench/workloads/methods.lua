-- Method calls: classes, inheritance over two levels, fields in between.
local size = tonumber(arg[1]) or 10

local Shape = {}
Shape.__index = Shape
function Shape.new(class, w, h)
  return setmetatable({ w = w, h = h, calls = 0 }, class)
end
function Shape:area()
  self.calls = self.calls + 1
  return self.w * self.h
end
function Shape:grow(by)
  self.w = (self.w + by) % 101
  return self
end

local Square = setmetatable({}, { __index = Shape })
Square.__index = Square
function Square:area()
  return Shape.area(self) + self:side()
end
function Square:side()
  return self.w
end

local Tagged = setmetatable({}, { __index = Square })
Tagged.__index = Tagged
function Tagged:side()
  return Square.side(self) + 1
end

local shapes = {
  Shape:new(3, 5), Square:new(7, 7), Tagged:new(11, 11), Square:new(2, 13),
}
for i, class in ipairs { Shape, Square, Tagged, Square } do
  setmetatable(shapes[i], class)
end
local sum = 0
for i = 1, size * 4000 do
  local shape = shapes[i % 4 + 1]
  sum = (sum + shape:grow(i % 3):area()) % 1000003
end
print(sum, shapes[1].calls, shapes[3].calls)
