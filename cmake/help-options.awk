# awk -v command=NAME -f help.awk -f help-options.awk part=1 OPTIONS part=2 HELP \
#   part=3 ALL: a line for each option of a command, with tabs between: command,
# option, argument as the help calls it (none: ""), words that it may be,
# description. OPTIONS is what `ljprof NAME --help=options` prints, ALL the help of
# all commands: a word that no help names is not offered.
part == 1 {
  options[++count] = $1
  value[$1] = $2
  $1 = $2 = ""
  words[options[count]] = $0
}
part == 2 {
  n = help_specs($0)
  if (n > 0) {
    # "-o, --output FILE": both take it.
    for (i = 1; i <= n; i++) {
      named[option[i]] = argument[i] == "" ? argument[n] : argument[i]
      waits[++waiting] = option[i]
    }
  } else {
    text = $0
    sub(/^ */, "", text)
  }
  if (text != "" && text != ",") {
    for (i = 1; i <= waiting; i++)
      if (!(waits[i] in description)) description[waits[i]] = text
    waiting = 0
  }
}
part == 3 {
  help = help " " $0 " "
}
END {
  options[++count] = "--help"
  for (i = 1; i <= count; i++) {
    o = options[i]
    offered = ""
    n = split(words[o], list, " ")
    for (w = 1; w <= n; w++)
      if (match(help, "[ ,(]" list[w] "[ ,.:;)]"))
        offered = offered (offered == "" ? "" : " ") list[w]
    if (value[o] != "" && named[o] == "") named[o] = "VALUE"
    printf "%s\t%s\t%s\t%s\t%s\n", command, o, \
      value[o] == "" ? "" : named[o], offered, description[o]
  }
}
