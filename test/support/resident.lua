-- KiB of memory that the process has in use.
return function()
  for line in io.lines("/proc/self/status") do
    local size = line:match("VmRSS:%s*(%d+)")
    if size then
      return tonumber(size)
    end
  end
end
