# What the tests that record a host share; they source it instead of lib.sh. A
# test starts its host with record_start, lets it work, ends it with record_end,
# and judges the files with the functions below.
# shellcheck shell=sh
. "$(dirname "$0")/lib.sh"
ljprof=$build/bin/ljprof
chmod 777 "$tmp" # Hosts drop root, and their children write files, too.

# record_start COMMAND...: starts the command under ljprof record, as $recorder.
record_start() {
  "$ljprof" record --children --memory --sample 16384 --force \
    -o "$tmp/host.ljp" -- "$@" > "$tmp/host.log" 2> "$tmp/record.log" &
  recorder=$!
  started="$started $recorder"
}

# record_host: the process number of the host.
record_host() {
  tr -d ' ' < "/proc/$recorder/task/$recorder/children"
}

# record_end: waits for the recorder, which must end with code 0.
record_end() {
  status=0
  wait "$recorder" || status=$?
  started=
  same 'exit status' 0 "$status"
}

# record_files: the files of the recording.
record_files() {
  find "$tmp" -maxdepth 1 -name 'host.ljp*' | sort
}

# whole: each file is whole and closed and accounts for its process's CPU time;
# nothing else is left beside them.
whole() {
  for file in $(record_files); do
    case ${file##*/} in
    host.ljp | host.ljp.[0-9]*[0-9] | host.ljp.[0-9]*-[0-9]*) ;;
    *) fail "a file is left: $file" ;;
    esac
    "$ljprof" check "$file" > "$tmp/check.log" 2>&1 ||
      fail "$(basename "$file"): $(tail -n 1 "$tmp/check.log")"
    "$build/bin/account" "$file" || fail "CPU time is missing"
  done
  echo "$(record_files | wc -l) files, all whole"
}

# names TEXT: at least one file has a stack that holds the pattern TEXT.
names() {
  for file in $(record_files); do
    "$ljprof" export --to collapsed "$file" --force -o "$tmp/stacks.txt" \
      2> "$tmp/export.log" || continue
    grep -q "$1" "$tmp/stacks.txt" || continue
    echo "a stack holds '$1'"
    return
  done
  fail "no stack holds '$1'"
}
