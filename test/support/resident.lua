-- Returns a function that tells the process's resident memory in KiB.
return function()
  for line in io.lines("/proc/self/status") do
    local size = line:match("VmRSS:%s*(%d+)")
    if size then
      return tonumber(size)
    end
  end
end
