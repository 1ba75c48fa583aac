#!/bin/sh
# The files that the commands write obey the rules of the library's streams: the
# old file's mode and owner stay, links stay links, and nobody else's link in a
# folder like /tmp is followed.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
data=$SOURCE_DIR/test/data

# write COMMAND FILE OPTION: FILE is written by this command.
commands='export flame svg diff merge embed'
write() {
  case $1 in
  export) "$ljprof" export --to collapsed "$3" -o "$2" "$data/killed.ljp" ;;
  flame) "$ljprof" flame --no-symbols "$data/killed.ljp" "$3" -o "$2" ;;
  svg) "$ljprof" flame --svg --no-symbols "$data/killed.ljp" "$3" -o "$2" ;;
  diff) "$ljprof" diff --no-symbols "$data/killed.ljp" "$data/every-record.ljp" "$3" \
    -o "$2" ;;
  merge) "$ljprof" merge "$3" -o "$2" "$data/killed.ljp" ;;
  embed) "$ljprof" embed "$3" -o "$2" "$data/every-record.ljp" ;;
  esac > out.txt 2>&1
}

# written COMMAND FILE: the file is new, and nothing is beside it.
written() {
  ! grep -qx old "$2" || fail "$1: not written"
  [ -s "$2" ] || fail "$1: empty"
  same "$1: nothing beside it" "" "$(find . -name '*.ljp-*' -o -name '.*.??????')"
}

for command in $commands; do
  echo old > file
  chmod 640 file
  if [ "$(id -u)" = 0 ]; then chown 65534:65533 file; fi
  before=$(stat -c '%a %u %g' file)
  write "$command" file --force || fail "$command: $(cat out.txt)"
  written "$command" file
  same "$command: mode and owner" "$before" "$(stat -c '%a %u %g' file)"
  rm file

  echo old > target
  ln -s target link
  write "$command" link --force || fail "$command: $(cat out.txt)"
  [ -L link ] || fail "$command: the link is gone"
  written "$command" target
  rm target

  write "$command" link --force || fail "$command: $(cat out.txt)"
  [ -L link ] || fail "$command: the link to nothing is gone"
  written "$command" target
  rm link target

  (
    umask 027
    write "$command" new --force
  ) || fail "$command: $(cat out.txt)"
  same "$command: the mode of a new file" 640 "$(stat -c %a new)"
  rm new
done

if [ "$(id -u)" = 0 ]; then
  echo old > target
  mkdir sticky
  chmod 1777 sticky
  ln -s "$PWD/target" sticky/link
  chown -h 65534:65534 sticky/link
  for command in $commands; do
    ! write "$command" sticky/link --force ||
      fail "$command follows a stranger's link"
    grep -q 'sticky/link: Permission denied$' out.txt ||
      fail "$command: $(cat out.txt)"
    same "$command: the file behind a stranger's link" old "$(cat target)"
  done
fi
