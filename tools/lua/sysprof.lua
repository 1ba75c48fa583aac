-- The command behind `luajit -ts`: shows each stack of a profile with its
-- number of samples. The module is a function of the command's arguments.
local command = require "utils.command"
local evread = require "utils.evread"
local sysprof = require "sysprof.parse"

local HELP = [[
luajit-parse-sysprof: shows the stacks of a profile, of sysprof or of ljprof

Usage: luajit -ts [options] sysprof.bin

  --help   show this help
]]

return function(args)
  local path = command("luajit-parse-sysprof.lua", HELP, {})(args)
  local events, _, why = evread(sysprof.parse, path, true)
  local stacks = {}
  for stack in pairs(events) do
    stacks[#stacks + 1] = stack
  end
  table.sort(stacks)
  for _, stack in ipairs(stacks) do
    print(stack, events[stack])
  end
  if why then
    io.stdout:flush()
    io.stderr:write(why)
  end
  os.exit(why and 1 or 0, true)
end
