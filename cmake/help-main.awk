# awk -v version=V -v date=YYYY-MM-DD -v commands="NAME..." -f help.awk \
#   -f help-main.awk HELP ENVIRONMENT: the page ljprof(1), from `ljprof --help` and
# from the rows "NAME | read by | meaning" of the reference.
function entry(spec, about) {
  print ".TP\n\\fB" roff(spec) "\\fR"
  say(about)
}
BEGIN {
  count = split(commands, list, /[ \n]+/)
  for (i = 1; i <= count; i++) known[list[i]] = 1
}
FNR == 1 && NR == 1 {
  printf ".TH LJPROF 1 %s \"ljprof %s\" \"ljprof\"\n", date, version
  print ".SH NAME\nljprof \\- record and show profiles of LuaJIT programs"
  print ".SH SYNOPSIS\n.nf"
  sub(/^Usage: ljprof/, "")
  print "\\fBljprof\\fR" roff($0)
  print ".fi\n.SH DESCRIPTION"
  fresh = 1
  next
}
NR != FNR {
  if (FNR == 1) print ".SH ENVIRONMENT"
  split($0, field, / *\| */)
  entry(field[1], toupper(substr(field[3], 1, 1)) substr(field[3], 2) \
    " (read by " field[2] ").")
  next
}
/^Commands:$/ {
  print ".SH COMMANDS"
  fresh = 1
  next
}
/^Exit code: / {
  sub(/^Exit code: /, "")
  print ".SH EXIT STATUS"
  say($0)
  fresh = 0
  next
}
/^$/ {
  if (!fresh) gap = 1
  next
}
/^  / {
  if ($1 in known) match($0, /[a-z-]+ +/)
  else match($0, /^  .*[^ ]  +/)
  spec = substr($0, RSTART, RLENGTH)
  gsub(/^ +| +$/, "", spec)
  entry(spec, substr($0, RSTART + RLENGTH))
  fresh = 0
  gap = 0
  next
}
{
  if (gap) print ".PP"
  gap = fresh = 0
  say($0)
}
END {
  print ".SH SEE ALSO"
  for (i = 1; i <= count; i++)
    print ".BR ljprof\\-" roff(list[i]) " (1)" (i < count ? "," : "")
}
