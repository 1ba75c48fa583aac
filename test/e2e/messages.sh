#!/bin/sh
# doc/guide/troubleshooting.md has an entry for each message of ours, and no
# entry for a message that does not exist. message_exceptions.py names the texts
# that are no messages.
# shellcheck disable=SC2016 # backquotes of Markdown, and variables of scripts
. "$(dirname "$0")/lib.sh"

check() { # [--exceptions] TREE GUIDE
  code=0
  python3 "$SOURCE_DIR/test/e2e/messages.py" "$@" > out.txt 2>&1 || code=$?
}
entries() { # ENTRY...: a guide with these.
  printf '| message |\n' > planted.md
  printf '| `%s` | Do something. |\n' "$@" >> planted.md
}

# The check proves itself on planted messages, each made in another way.
mkdir -p planted/src planted/tools/lua planted/tools/viewer planted/cmake
cat > planted/src/planted.c << 'END'
/* "This is no message." */
_Static_assert(1, "neither is this one");
#define LJP_SEA_LIST(_) \
  _(CALM, 0, "sea too calm") \
  _(ROUGH, 1, "rough") /* one word, and an apostrophe's */
static const char *const planted_why[] = {"the anchor is lost", "x"};
static const char *planted_find(int n)
{
  fail("there is no "
       "process %d", n);
  snprintf(m->error, sizeof m->error, "off by %" PRIu64 " miles; " PLANTED_HINT, d);
  ljp_command_error("sail", "%s: not wet", f);
  ljp_print_format(out, "%d ships in the harbour", n);
  ljp_print_format(out, "no wind in the file");
  return n ? NULL : "the moon is in the wrong house";
}
END
cat > planted/run << 'END'
say "all goes well"
[ -e "$1" ] || die "no anchor at $(dirname "$1"):" \
  "drop it first"
say 'no tide today'
echo "all is well"
echo "the sail of '$1' is torn" >&2
END
cat > planted/cmake/planted.awk << 'END'
function why(x) {
  return file ": there is no " x \
    " in the sea"
}
{ die(file ": the net holds " n " fish") }
END
echo 'message(FATAL_ERROR "the keel ${x} is dry")' > planted/cmake/planted.cmake
echo 'error(("mast %d is" .. " short"):format(n))' > planted/tools/lua/planted.lua
echo "t = ['Ships and boats', 'No ship ' +
  'matches.']" > planted/tools/viewer/planted.js
echo '<noscript>Turn it on.</noscript>' > planted/tools/viewer/planted.html
entries 'there is no process ...' 'no tide comes before ...' 'in the wrong'
check planted planted.md
same "messages without an entry fail" 1 "$code"
cat > wanted.txt << 'END'
no entry: cmake/planted.awk:2: %s: there is no %s in the sea
no entry: cmake/planted.awk:5: %s: the net holds %s fish
no entry: cmake/planted.cmake:1: the keel %s is dry
no entry: run:2: no anchor at %s: drop it first
no entry: run:4: no tide today
no entry: run:6: the sail of '%s' is torn
no entry: src/planted.c:4: sea too calm
no entry: src/planted.c:6: the anchor is lost
no entry: src/planted.c:11: off by %d miles; %s
no entry: src/planted.c:12: %s: not wet
no entry: src/planted.c:14: no wind in the file
no entry: src/planted.c:15: the moon is in the wrong house
no entry: tools/lua/planted.lua:1: mast %d is short
no entry: tools/viewer/planted.html:1: Turn it on.
no entry: tools/viewer/planted.js:1: No ship matches.
no such message: no tide comes before ...
no such message: in the wrong
16 messages, 3 entries
END
diff wanted.txt out.txt > diff.txt || fail "$(cat diff.txt)"
ok "they are named, and so are entries without a message or with too little of one"
entries 'there is no process ...' '...: there is no ... in the sea' \
  'the net holds ... fish' 'the keel ... is dry' 'no anchor at ...: drop it first' \
  "the sail of '...' is torn" 'sea too calm' 'the anchor is lost' 'off by ... miles' \
  '...: not wet' 'no wind in the file' 'the moon is in the wrong ...' \
  'mast ... is short' 'Turn it on.' 'No ship matches.' \
  'no tide today'
check planted planted.md
same "messages with entries pass" "16 messages, 16 entries" "$(cat out.txt)"
check --exceptions planted planted.md
grep -q '^no such text: .*the help of a command' out.txt || fail "$(cat out.txt)"
same "exceptions without a text fail" 1 "$code"

check --exceptions "$SOURCE_DIR" "$SOURCE_DIR/doc/guide/troubleshooting.md"
[ "$code" = 0 ] || fail "the guide to messages: $(cat out.txt)"
ok "each message has an entry: $(tail -n 1 out.txt)"
