-- The command behind `luajit -tm`: shows a memory profile. The module is a
-- function of the command's arguments.
local command = require "utils.command"
local evread = require "utils.evread"
local humanize = require "memprof.humanize"
local memprof = require "memprof.parse"
local process = require "memprof.process"

local HELP = [[
luajit-parse-memprof: shows a memory profile, of memprof or of ljprof

Usage: luajit -tm [options] memprof.bin

  --leak-only        show only what was not freed
  --human-readable   show KiB, MiB and GiB instead of bytes
  --help             show this help
]]

return function(args)
  local config = {leak_only = false, human_readable = false}
  local path = command("luajit-parse-memprof.lua", HELP, {
    ["leak-only"] = function() config.leak_only = true end,
    ["human-readable"] = function() config.human_readable = true end,
  })(args)
  local events, symbols, why = evread(memprof.parse, path, true)
  if not config.leak_only then
    humanize.profile_info(events, config)
  end
  humanize.leak_info(process.form_heap_delta(events), config)
  humanize.aliases(symbols)
  if why then
    io.stdout:flush()
    io.stderr:write(why)
  end
  os.exit(why and 1 or 0, true)
end
