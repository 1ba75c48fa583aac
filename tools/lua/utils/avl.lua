-- A balanced tree (AVL) as a map with ordered keys. A tree is its root node,
-- nil if it is empty; a node is {key, value, left, right, height}.
local M = {}

local function height(node)
  return node and node.height or 0
end

local function measure(node)
  node.height = 1 + math.max(height(node.left), height(node.right))
  return node
end

-- Lifts the child on one side above its parent; returns the child.
local function lift(node, side, other)
  local child = node[side]
  node[side], child[other] = child[other], node
  measure(node)
  return measure(child)
end

-- Restores the balance of a node whose side may be too high by one.
local function balance(node, side, other)
  local child = node[side]
  if height(child) - height(node[other]) < 2 then
    return measure(node)
  end
  if height(child[other]) > height(child[side]) then
    node[side] = lift(child, other, side)
  end
  return lift(node, side, other)
end

-- Adds a key, or gives it another value. Returns the new root.
function M.insert(node, key, value)
  assert(key ~= nil, "the key is nil")
  if not node then
    return {key = key, value = value, height = 1}
  end
  if key < node.key then
    node.left = M.insert(node.left, key, value)
    return balance(node, "left", "right")
  elseif key > node.key then
    node.right = M.insert(node.right, key, value)
    return balance(node, "right", "left")
  end
  node.value = value
  return node
end

-- The largest key that is not above the given one, and its value; nil: none.
function M.floor(node, key)
  local best
  while node do
    if key < node.key then
      node = node.left
    else
      best = node
      node = node.right
    end
  end
  if best then
    return best.key, best.value
  end
  return nil, nil
end

M.upper_bound = M.floor -- Its name in older versions.

return M
