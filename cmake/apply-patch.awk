# apply-patch.awk: changes a tree of LuaJIT as a patch of src/luajit/patches
# says. awk -v tree=DIR -f apply-patch.awk PATCH
#
# A hunk of such a patch names a definition (a function, a type or a table)
# instead of line numbers:
#
#   what the patch changes, and why
#   --- src/lj_gc.c
#   @@ gc_onestep
#        g->gc.state = GCSatomic;
#   +    ljp_hook_gc(g);
#   @@ or gc_atomic_done
#   ...
#   @@ nowhere else
#   !g->gc.state =
#   @@ where there is lua_resetthread
#   ...
#
# Lines with ' ' must be there, lines with '-' are taken out, lines with '+' are
# put in. The lines with ' ' and '-' occur together in the definition, exactly
# once; comments, white space and empty lines do not count. "@@ *" is the code
# outside of all definitions. Of a hunk and the "or" hunks after it, exactly one
# fits. Text after '!' occurs in no line of the file but those that the patch's
# hunks name. A hunk "where there is" a definition is left out of a tree that has no
# definition of this name.
#
# So a hook is in the function that the patch names, or nowhere. The program
# writes a file only when all hunks for it fit. Otherwise it prints one line and
# exits with 1. In LuaJIT's files, a definition begins in the first column and
# ends with a '}' there.

function die(text) {
  print text
  dead = 1
  exit 1
}

# bare LINE: the line without comments and white space; keeps track of comments
# over several lines. Sets first_column: does code begin in the first column?
function bare(line,   out, at) {
  out = ""
  first_column = 0
  if (!in_comment && line ~ /^[A-Za-z_]/) first_column = 1
  while (line != "") {
    if (in_comment) {
      at = index(line, "*/")
      if (!at) break
      line = substr(line, at + 2)
      in_comment = 0
    } else {
      at = index(line, "/*")
      if (!at) { out = out line; break }
      out = out substr(line, 1, at - 1)
      line = substr(line, at + 2)
      in_comment = 1
    }
  }
  spaced = out
  gsub(/[ \t\r]+/, " ", spaced)
  gsub(/[ \t\r]/, "", out)
  return out
}

function last_word(text,   words, n) {
  gsub(/[^A-Za-z0-9_]+/, " ", text)
  n = split(text, words, " ")
  return n ? words[n] : ""
}

# name_of HEADER: the name of what these lines begin to define.
function name_of(header,   name, open) {
  open = index(header, "(")
  if (open) {
    name = last_word(substr(header, 1, open - 1))
    # LJLIB_CF(name): the library's function.
    if (name ~ /^LJLIB_/ && match(header, /LJLIB_(CF|ASM|ASM_)\([a-z0-9_]+/))
      name = last_word(substr(header, RSTART, RLENGTH))
    return name
  }
  sub(/[=[].*/, "", header)
  return last_word(header)
}

# load FILE: reads its lines, their bare text and their definitions.
function load(name,   line, header, names, start, inside, i, macro, closing) {
  file = name
  lines = 0
  in_comment = inside = macro = 0
  header = names = ""
  split("", raw); split("", text); split("", home); split("", named)
  split("", before); split("", after); split("", gone); split("", taken)
  definitions = 0
  while ((getline line < (tree "/" file)) > 0) {
    raw[++lines] = line
    text[lines] = bare(line)
    home[lines] = inside
    if (macro || text[lines] ~ /^#/) {
      macro = line ~ /\\$/
      # One body may follow two headers, one after #if and one after #else.
      if (header != "") names = names name_of(header) " "
      header = ""
    } else if (inside) {
      if (line ~ /^[}]/) {
        closing = last_word(spaced)
        if (closing != "" && text[lines] ~ /^[}][A-Za-z0-9_]+;/)
          named[inside] = " " closing " "
        inside = 0
      }
    } else if (text[lines] == "") {
      header = names = ""
    } else if (first_column || header != "" || names != "") {
      if (header == "" && names == "") start = lines
      if (text[lines] != "{") header = header " " spaced
      if (text[lines] ~ /[{]$/) {
        inside = ++definitions
        named[inside] = " " names name_of(header) " "
        for (i = start; i <= lines; i++) home[i] = inside
        header = names = ""
      } else if (text[lines] ~ /[;}]$/) {
        header = names = ""
      }
    }
  }
  close(tree "/" file)
  if (!lines) die(file ": there is no such file")
}

# store: writes the file that is loaded.
function store(   i, out) {
  if (file == "") return
  out = tree "/" file ".patched"
  for (i = 1; i <= lines; i++)
    printf "%s%s%s", before[i], gone[i] ? "" : raw[i] "\n", after[i] > out
  if (close(out) || system("mv -f '" out "' '" tree "/" file "'"))
    die(file ": cannot be written")
  file = ""
}

# is_home DEFINITION HUNK: whether the hunk names this definition.
function is_home(d, h) {
  return d ? index(named[d], " " scope[h] " ") > 0 : scope[h] == "*"
}

# fits HUNK LINE: whether the hunk's pattern begins at this line; place[] gets
# the lines of the file that it matches.
function fits(h, i,   k, d) {
  d = home[i]
  if (!is_home(d, h)) return 0
  for (k = 1; k <= patterns[h]; k++) {
    while (k > 1 && i <= lines && text[i] == "") i++
    if (i > lines || home[i] != d || text[i] != pattern[h, k]) return 0
    place[k] = i++
  }
  return 1
}

function where(h) {
  return file ": " (scope[h] == "*" ? "outside of functions" : scope[h])
}

# defines HUNK: whether the file has the definition that the hunk names.
function defines(h,   i) {
  for (i = 1; i <= definitions; i++) if (is_home(i, h)) return 1
  return 0
}

# missing HUNK: why the hunk does not fit.
function missing(h,   k, i, here) {
  if (scope[h] != "*" && !defines(h))
    return file ": there is no " scope[h]
  for (k = 1; k <= patterns[h]; k++) {
    here = 0
    for (i = 1; i <= lines; i++)
      if (text[i] == pattern[h, k] && is_home(home[i], h)) here = 1
    if (!here) return where(h) ": there is no line '" shown[h, k] "'"
  }
  return where(h) ": the lines from '" shown[h, 1] "' on are not together"
}

# settle: makes the changes of the one hunk of the group that fits.
function settle(   h, i, k, count, fit, e) {
  if (!hunks) return
  fit = 0
  for (h = 1; h <= hunks; h++) {
    if (!patterns[h]) die("line " at_line[h] " of the patch: a hunk needs a " \
      "line that is there")
    count = 0
    for (i = 1; i <= lines; i++)
      if (text[i] == pattern[h, 1] && fits(h, i)) count++
    if (count > 1) die(where(h) ": '" shown[h, 1] "' stands there " count \
      " times")
    if (count && fit) die(where(h) ": two alternatives fit")
    if (count) fit = h
  }
  if (!fit && perhaps && !defines(1)) { hunks = 0; return }
  if (!fit) die(missing(1))
  for (i = 1; i <= lines; i++)
    if (text[i] == pattern[fit, 1] && fits(fit, i)) break
  fits(fit, i)
  for (k = 1; k <= patterns[fit]; k++) taken[file, place[k]] = 1
  for (e = 1; e <= edits[fit]; e++) {
    k = edit_at[fit, e]
    if (edit[fit, e] == "-") gone[place[k]] = 1
    else if (k) after[place[k]] = after[place[k]] edit_text[fit, e] "\n"
    else before[place[1]] = before[place[1]] edit_text[fit, e] "\n"
  }
  hunks = 0
}

# called DEFINITION: its last name.
function called(d) {
  return last_word(named[d])
}

# guard TEXT: no other line of the file may contain it.
function guard(part,   i) {
  shown_part = part
  gsub(/[ \t]/, "", part)
  for (i = 1; i <= lines; i++)
    if (index(text[i], part) && !((file, i) in taken))
      die(file ": line " i (home[i] ? ", in " called(home[i]) ", " : " ") \
        "has '" shown_part "', too, and no hunk names that line")
}

/^--- / { settle(); store(); load($2); next }
file == "" { next }
/^@@ nowhere else$/ { settle(); next }
/^@@ (or |where there is )?[A-Za-z0-9_*]+$/ {
  if ($2 != "or") settle()
  else if (!hunks) die("line " NR " of the patch: 'or' follows no hunk")
  if (!hunks) perhaps = $2 == "where"
  scope[++hunks] = $NF
  patterns[hunks] = edits[hunks] = 0
  at_line[hunks] = NR
  next
}
/^!./ && !hunks { guard(substr($0, 2)); next }
/^[-+ ]/ && hunks {
  in_comment = 0
  body = substr($0, 2)
  if (/^[- ]/) {
    if (bare(body) == "") next
    k = ++patterns[hunks]
    pattern[hunks, k] = bare(body)
    gsub(/^[ \t]+|[ \t]+$/, "", body)
    shown[hunks, k] = body
  }
  if (/^ /) next
  e = ++edits[hunks]
  edit[hunks, e] = substr($0, 1, 1)
  edit_at[hunks, e] = patterns[hunks]
  edit_text[hunks, e] = body
  next
}
/^$/ { next }
{ die("line " NR " of the patch is no hunk, and names no definition") }
END { if (!dead) { settle(); store() } }
