-- The arguments of the commands memprof and sysprof: options and one file.

-- command(name, help, options): a function of the arguments. options maps a
-- long option to a function without arguments. The function returns the file.
return function(name, help, options)
  local function fail(text)
    io.stderr:write(name, ": ERROR: ", text, "\n")
    os.exit(1)
  end

  options.help = options.help or function()
    io.stdout:write(help)
    os.exit(0)
  end

  return function(args)
    local files, only_files = {}, false
    for _, argument in ipairs(args) do
      local dashes, option = argument:match("^(%-%-?)(.+)")
      if only_files or not option then
        files[#files + 1] = argument
      elseif dashes == "--" and options[option] then
        options[option]()
      else
        fail(("unrecognized option `%s'. Try `--help'."):format(argument))
      end
      only_files = only_files or argument == "--"
    end
    if files[1] == "--" then
      table.remove(files, 1)
    end
    if #files ~= 1 then
      options.help()
    end
    return files[1]
  end
end
