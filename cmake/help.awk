# How the help of commands is laid out, and roff: for help-man.awk, help-main.awk
# and help-options.awk.

# help_specs(LINE): reads what stands before the description in a line such as
# "  -o, --output FILE  write to FILE". Fills option[] and argument[], sets `text`
# to the description and `column` to where it begins, 0 if that is not the column
# of the help (there is no description, or the options reach into it). Returns
# the number of options; 0: the line is none of options.
function help_specs(line, n, rest, spaces) {
  rest = line
  if (!sub(/^  -/, "-", rest)) return 0
  for (n = 0; match(rest, /^--?[a-z][a-z-]*/); ) {
    option[++n] = substr(rest, 1, RLENGTH)
    argument[n] = ""
    rest = substr(rest, RLENGTH + 1)
    if (match(rest, /^ ([A-Z]|label:)[^ ]*/)) {
      argument[n] = substr(rest, 2, RLENGTH - 1)
      sub(/,$/, "", argument[n])
      rest = substr(rest, RLENGTH + 1)
    }
    if (rest !~ /^,? -/) break
    sub(/^,? /, "", rest)
  }
  match(rest, /^ */)
  spaces = RLENGTH
  text = substr(rest, spaces + 1)
  column = (text != "" && spaces > 1) ? length(line) - length(text) : 0
  return n
}

# help_goes_on(LINE): the options go on in the next line, as "  --time A..B,".
function help_goes_on(line) {
  return help_specs(line) > 0 && (text == "" || text == ",")
}

# Text for roff.
function roff(s) {
  gsub(/\\/, "\\e", s)
  gsub(/-/, "\\-", s)
  gsub(/'/, "\\(aq", s)
  gsub(/\^/, "\\(ha", s)
  gsub(/~/, "\\(ti", s)
  gsub(/`/, "\\(ga", s)
  return s
}
# Prints text that is filled, in lines that are not too long.
function say(s, n, i, list, line) {
  n = split(roff(s), list, " ")
  for (i = 1; i <= n; i++) {
    if (line != "" && length(line " " list[i]) > 78) {
      print line
      line = ""
    }
    if (line == "" && list[i] ~ /^\./) list[i] = "\\&" list[i]
    line = line (line == "" ? "" : " ") list[i]
  }
  print line
}
