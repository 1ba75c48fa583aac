-- Converts files of our profilers into those of Tarantool's, by the command
-- ljprof, for the modules memprof.parse and sysprof.parse.
local M = {}

-- Whether a file with these first four bytes is a stream of ours.
function M.is_ours(bytes)
  return bytes == "\137LJP"
end

local function exists(path)
  local file = io.open(path, "rb")
  if file then
    file:close()
  end
  return file ~= nil
end

local function quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- The command beside this installation (ROOT/share/luajit-2.1/ljprof/), else
-- in PATH; nil: there is none.
local function find_command()
  local source = debug.getinfo(1, "S").source
  local root = source:match("^@(.*)/share/luajit%-2%.1/")
  if root and exists(root .. "/bin/ljprof") then
    return quote(root .. "/bin/ljprof")
  end
  local pipe = io.popen("command -v ljprof 2> /dev/null")
  local found = pipe and pipe:read("*l")
  if pipe then
    pipe:close()
  end
  return found and quote(found)
end

-- Runs a command; returns its exit code and its output, which is its stderr.
local function run(command)
  local pipe = io.popen(command .. " 2>&1; echo \"exit $?\"")
  local text = pipe and pipe:read("*a") or ""
  if pipe then
    pipe:close()
  end
  local output, code = text:match("^(.*)exit (%d+)\n$")
  return tonumber(code) or 1, output or text
end

-- Writes the file as "ljm" or "ljp" into a temporary file, whose path is
-- returned; nil and a sentence if that fails. What the file says of losses goes
-- to stderr.
function M.run(path, kind)
  local command = find_command()
  if not command then
    return nil, path .. " is a file of ljprof; the command ljprof, which" ..
      " converts it, is neither beside these modules (bin/) nor in PATH"
  end
  if path:sub(1, 1) == "-" then
    path = "./" .. path
  end
  local out = os.tmpname()
  local code, output = run(("%s export --to %s --force -o %s %s"):
    format(command, kind, quote(out), quote(path)))
  if code ~= 0 then
    os.remove(out)
    return nil, (output:gsub("\n$", ""):gsub("use %-%-to lj([mp])$",
      {m = "use luajit -tm", p = "use luajit -ts"}))
  end
  for line in output:gmatch("[^\n]+") do
    if not line:find("note: left out:", 1, true) then
      io.stderr:write(line, "\n")
    end
  end
  return out
end

return M
