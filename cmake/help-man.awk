# awk -v command=NAME -v about=TEXT -v version=V -v date=YYYY-MM-DD \
#   -f help.awk -f help-man.awk HELP: the man page of a command, from its help.

function indent(s) {
  match(s, /^ */)
  return RLENGTH
}
# Ends a block of lines that are shown as they are.
function fill() {
  if (verbatim) print in_entry ? ".fi" : ".fi\n.RE"
  verbatim = 0
}
function as_is(s) {
  if (!verbatim) print in_entry ? ".nf" : ".RS 4\n.nf"
  verbatim = 1
  s = roff(s)
  print (s ~ /^\./ ? "\\&" : "") s
}
# A break before a paragraph, unless a heading has made one.
function paragraph() {
  fill()
  if (!fresh) print ".PP"
  fresh = 0
}
function section(s) {
  fill()
  print ".SH " s
  fresh = 1
}
# The names of options, each with its argument.
function names(n, i, s) {
  for (i = 1; i <= n; i++)
    s = s (i > 1 ? ", " : "") "\\fB" roff(option[i]) "\\fR" \
      (argument[i] == "" ? "" : " \\fI" roff(argument[i]) "\\fR")
  return s
}

{
  lines[NR] = $0
}

END {
  title = toupper("ljprof-" command)
  printf ".TH %s 1 %s \"ljprof %s\" \"ljprof\"\n", roff(title), date, version
  printf ".SH NAME\n%s \\- %s\n", roff("ljprof-" command), roff(about)
  print ".SH SYNOPSIS\n.nf"
  for (i = 1; lines[i] ~ /^(Usage:|  +ljprof )/; i++) {
    usage = lines[i]
    sub(/^Usage:/, "", usage)
    sub(/^ */, "", usage)
    sub("^ljprof " command, "", usage)
    print "\\fBljprof " roff(command) "\\fR" roff(usage)
  }
  print ".fi"
  section("DESCRIPTION")
  in_options = 0
  blank = 0
  for (; i <= NR; i++) {
    line = lines[i]
    if (line == "") {
      blank = 1
      continue
    }
    # Options whose names take several lines are one entry.
    while (help_goes_on(line) && lines[i + 1] ~ /^  -/) {
      next_line = lines[++i]
      sub(/^ */, " ", next_line)
      line = line next_line
    }
    n = help_specs(line)
    if (n > 0) {
      if (!in_options) section("OPTIONS")
      in_options = 1
      fill()
      at = column
      rest = text
      print ".TP\n" names(n)
      if (rest != "") say(rest)
      blank = fresh = 0
      in_entry = 1
      continue
    }
    if (in_entry && !blank && indent(line) > 2) {
      # The description goes on; what stands elsewhere is a list.
      if (at == 0 && !verbatim) at = indent(line)
      if (indent(line) == at) {
        fill()
        say(substr(line, at + 1))
      } else
        as_is(substr(line, (indent(line) < at ? indent(line) : at) + 1))
      continue
    }
    was_entry = in_entry
    if (in_entry) fill()
    in_entry = 0
    if (line ~ /^Exit code: /) {
      section("EXIT STATUS")
      sub(/^Exit code: /, "", line)
      line = toupper(substr(line, 1, 1)) substr(line, 2)
    } else if (blank && line ~ /^[A-Z].*:$/ && lines[i + 1] ~ /^  -/) {
      if (!in_options) section("OPTIONS")
      in_options = 1
      fill()
      sub(/:$/, "", line)
      print ".SS " roff(line)
      fresh = 1
      blank = 0
      continue
    } else if (line ~ /^  /) {
      if (blank) paragraph()
      as_is(substr(line, 3))
      blank = fresh = 0
      continue
    } else if (blank || was_entry || verbatim)
      paragraph()
    blank = fresh = 0
    say(line)
  }
  fill()
  print ".SH SEE ALSO\n.BR ljprof (1)"
}
