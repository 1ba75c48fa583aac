#!/bin/sh
# doc/guide/troubleshooting.md has an entry for each message of ours, and no
# entry for a message that does not exist. messages.py says which files are
# covered so far.
# shellcheck disable=SC2016 # backquotes of Markdown
. "$(dirname "$0")/lib.sh"

check() {
  code=0
  python3 "$SOURCE_DIR/test/e2e/messages.py" "$@" > out.txt 2>&1 || code=$?
}

# The check proves itself on planted messages and entries.
cat > planted.c << 'END'
fail("there is no "
     "process %d", pid);
fail("the moon is in the wrong house, by %" PRIu64 " degrees", n);
END
printf '| message |\n| `there is no process ...`, `no tide comes before ...` |\n' \
  > planted.md
check "$SCRATCH" planted.md planted.c
same "a message without an entry fails" 1 "$code"
same "a message without an entry is named, and so is an entry without one" \
  "no entry: planted.c: the moon is in the wrong house, by %d degrees;no such message: no tide comes before ...;2 messages, 2 entries" \
  "$(paste -sd ';' out.txt)"
printf '| message |\n| `there is no process ...`, `the moon is in ... degrees` |\n' \
  > planted.md
check "$SCRATCH" planted.md planted.c
same "messages with entries pass" 0 "$code"

check "$SOURCE_DIR" "$SOURCE_DIR/doc/guide/troubleshooting.md"
[ "$code" = 0 ] || fail "the guide to messages: $(cat out.txt)"
ok "each message has an entry: $(tail -n 1 out.txt)"
