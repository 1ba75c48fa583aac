#!/bin/bash
# Symbols of machine code: programs that tell where they are (host.c) against
# what we find for their addresses, however they were linked, stripped and
# replaced; and files that are not what ran.
. "$(dirname "$0")/lib.sh"

probe=$BUILD_DIR/bin/symbols_probe
cc=${CC:-cc}
here=$SOURCE_DIR/test/symbols
libs="$BUILD_DIR/src/libljp_stream.a $BUILD_DIR/src/libljp_core.a"
export LJPROF_DEBUG_PATH=$SCRATCH/debug
unset DEBUGINFOD_URLS
mkdir -p debug

# compile OUT FLAGS...: host.c
compile() {
  out=$1
  shift
  # shellcheck disable=SC2086 # words are wanted
  "$cc" -std=gnu11 -O2 -g -Wl,--build-id -I "$SOURCE_DIR" "$@" "$here/host.c" \
    $libs -ldl -lpthread -o "$out" || fail "cannot compile $out"
}

library() { # OUT WHICH FLAGS...
  out=$1 which=$2
  shift 2
  "$cc" -std=gnu11 -O2 -g -fPIC -shared -Wl,--build-id "-DWHICH=$which" "$@" \
    "$here/library.c" -o "$out" || fail "cannot compile $out"
}

# asked FILE: what the probe is told of each place; wanted FILE: what it is to
# say.
asked() {
  cut -f 1-5 "$1"
}
wanted() {
  cut -f 6 "$1"
}
# agrees WHAT PLACES [N]: every place is found; there are N at least.
agrees() {
  [ "$(wc -l < "$2")" -ge "${3:-5}" ] || fail "$1: only: $(cat "$2")"
  asked "$2" | "$probe" > got 2> notices || fail "$1: $(cat notices)"
  wanted "$2" > want
  diff -u want got > diff.txt || fail "$1: $(cat diff.txt notices)"
  same "$1: nothing to complain about" "" "$(cat notices)"
}
# names_only WHAT PLACES: the outermost function of each place, no lines.
names_only() {
  asked "$2" | "$probe" > got 2> notices || fail "$1: $(cat notices)"
  wanted "$2" | sed 's/^.*;//; s/:[0-9]*$/:0/' > want
  diff -u want got > diff.txt || fail "$1: $(cat diff.txt notices)"
  ok "$1"
}

compile pie -fPIE -pie
./pie > places
agrees "a PIE, inlined functions and lines" places
grep -q 'innermost;middle;outer_one' got || fail "no inlined functions"
asked places | "$probe" -l | grep -q 'innermost(host.c:[0-9]*);middle(host.c:[0-9]*);outer_one(host.c:[0-9]*):' ||
  fail "no lines of the callers"
ok "callers of inlined functions have lines, too"
compile nopie -fno-pie -no-pie
./nopie > places
agrees "a program that is not PIE" places
compile dwarf4 -gdwarf-4
./dwarf4 > places
agrees "DWARF 4" places
compile zipped -gz=zlib
./zipped > places
agrees "compressed debug sections" places
compile noid -Wl,--build-id=none
./noid > places
agrees "no build-id: told by its size" places
asked places | awk -F '\t' -v OFS='\t' '{ $3 += 4096; print }' |
  "$probe" > got 2> notices || fail "other size"
grep -q 'noid: nothing shows that it is the file that ran: not used' notices ||
  fail "another size is not said: $(cat notices)"
same "and not used when it has another size" 0 "$(grep -c : got)"
if command -v clang > /dev/null; then
  gcc=$cc cc=clang
  compile with_clang -Wno-unknown-attributes
  cc=$gcc
  ./with_clang > places
  agrees "a program of clang, which has no .debug_aranges" places
fi

# Entries of the linkage table, in the forms that linkers give it.
entries() { # PROGRAM
  objdump -d -j .plt -j .plt.sec -j .plt.got "$1" 2> /dev/null |
    sed -n 's/^0*\([0-9a-f]*\) <\([A-Za-z_0-9]*\)\(@[A-Z][^>]*\)\{0,1\}@plt>:$/\1 \2@plt/p'
}
case $(uname -m) in
x86_64)
  for form in "-Wl,-z,lazy" "-Wl,-z,now" "-fcf-protection=full -Wl,-z,ibtplt"; do
    # shellcheck disable=SC2086 # words are wanted
    compile plt -fPIE -pie $form
    ./plt > places
    strip plt
    entries plt > entries.txt
    [ "$(wc -l < entries.txt)" -gt 10 ] || fail "no entries: $form"
    id=$(awk -F '\t' '{ print $2; exit }' places)
    while read -r at _; do
      printf '%s\t%s\t1\t0\t%s\n' "$PWD/plt" "$id" "$at"
    done < entries.txt | "$probe" > got 2> notices || fail "entries"
    sed 's/^[^ ]* //; s/$/:0/' entries.txt > want
    if [ "$form" = "-fcf-protection=full -Wl,-z,ibtplt" ]; then
      # Two tables: the first one's entries lead nowhere by themselves.
      grep -c '@plt:0$' got > named || fail "no entries are named"
      [ "$(cat named)" -ge "$(($(wc -l < want) / 2))" ] || fail "$form: $(cat got)"
      paste -d ' ' got want | grep '@plt.* ' | awk '$1 != $2 && $1 ~ /@plt/' > wrong
      same "entries of the linkage table, $form" "" "$(cat wrong)"
    else
      diff -u want got > diff.txt || fail "entries: $(cat diff.txt)"
      ok "entries of the linkage table, $form"
    fi
  done
  ;;
esac

# Stripped, in all the ways that its names may lie elsewhere.
compile whole
./whole > places
cp whole saved
objcopy --only-keep-debug saved whole.debug
strip -o whole saved
names_elsewhere() {
  asked places | "$probe" > got 2> notices || fail "stripped"
  grep -qE '^whole\+0x[0-9a-f]+$' got || fail "$1: $(cat got)"
  same "$1: module and offset" "" "$(grep -v '^whole+0x' got || :)"
}
mv whole.debug aside
names_elsewhere "stripped, and no debug file"
id=$(awk -F '\t' '{ print $2; exit }' places)
mkdir -p "debug/.build-id/${id%"${id#??}"}"
cp aside "debug/.build-id/${id%"${id#??}"}/${id#??}.debug"
agrees "a debug file by build-id" places
rm -r debug/.build-id
cp aside whole.debug
objcopy --add-gnu-debuglink=whole.debug whole
agrees "a debug file by debuglink" places
mkdir .debug
mv whole.debug .debug
agrees "in .debug" places
mkdir -p "debug/$PWD"
mv .debug/whole.debug "debug/$PWD/"
agrees "below the folder of debug files" places
printf 'x' >> "debug/$PWD/whole.debug"
names_elsewhere "a debuglink's file that was changed"
grep -q 'whole.debug: its checksum is .* the debuglink of .* wants .*: not used' \
  notices || fail "the checksum: $(cat notices)"
ok "and is said: $(cat notices)"
rm -r "debug/${PWD#/}"
# Without its own file, the debug file alone names everything.
mkdir -p "debug/.build-id/${id%"${id#??}"}"
cp aside "debug/.build-id/${id%"${id#??}"}/${id#??}.debug"
mv whole whole.gone
asked places | "$probe" > got 2> notices || fail "program gone"
wanted places | diff - got > /dev/null || fail "program gone: $(cat got)"
ok "the debug file is enough where the program is gone"
rm -r debug/.build-id
mv whole.gone whole

# From a server of debug files, if the user has set one and only then. It is
# this test's own, here.
names_elsewhere "nothing is asked for over the network unasked"
if command -v python3 > /dev/null && ldconfig -p | grep -q libdebuginfod.so.1
then
  mkdir -p "served/buildid/$id"
  cp aside "served/buildid/$id/debuginfo"
  cat > serve.py << 'EOF'
import functools, http.server
class Log(http.server.SimpleHTTPRequestHandler):
    def log_message(self, form, *args):
        open('requests', 'a').write(form % args + '\n')
server = http.server.HTTPServer(
    ('127.0.0.1', 0), functools.partial(Log, directory='served'))
open('port', 'w').write(str(server.server_port))
server.serve_forever()
EOF
  python3 serve.py &
  server=$!
  at_end="kill $server"
  for _ in $(seq 1 100); do
    [ -s port ] && break
    sleep 0.1
  done
  export DEBUGINFOD_CACHE_PATH=$SCRATCH/cache
  names_elsewhere "a server that nobody named"
  [ ! -e requests ] || fail "the network was used: $(cat requests)"
  port=$(cat port)
  export DEBUGINFOD_URLS=http://127.0.0.1:$port
  agrees "a debug file of a server" places
  grep -q "GET /buildid/$id/debuginfo" requests || fail "$(cat requests)"
  ok "asked for by build-id"
  rm -r served/buildid cache
  names_elsewhere "a server that does not have it"
  export DEBUGINFOD_URLS="http://127.0.0.1:1"
  rm -rf cache
  asked places | "$probe" > got 2> notices || fail "no server"
  grep -q 'whole: debuginfod: ' notices || fail "no word of it: $(cat notices)"
  ok "a server that does not answer is said: $(cat notices)"
  unset DEBUGINFOD_URLS
else
  echo "skipped: there is no python3 or no libdebuginfod"
fi

# Not the file that ran.
compile whole -DOTHER -O1 -fno-inline -g0
asked places | "$probe" > got 2> notices || fail "another build"
same "a file with another build-id is not used" "" "$(grep -v + got || :)"
grep -qE "/whole: its build-id is [0-9a-f]{40}, that of the file that ran is $id: not used" \
  notices || fail "and not said: $(cat notices)"
ok "and that is said"

# Libraries: loaded, unloaded, replaced at the same path.
compile host -rdynamic
mkdir -p libs kept
library libs/libplaces.so one
./host vdso "$PWD/libs/libplaces.so" > places.1
cp libs/libplaces.so kept/one.so
library libs/libplaces.so two
./host "$PWD/libs/libplaces.so" > places.2
grep libplaces places.1 > only.1
grep libplaces places.2 > only.2
agrees "a library that was loaded and unloaded" only.2 3
cat only.1 only.2 > both
asked both | "$probe" > got 2> notices || fail "both"
wanted only.2 | diff - <(tail -n 3 got) || fail "the second library"
same "of two libraries at a path, the one that is gone has offsets only" 3 \
  "$(head -n 3 got | grep -c '^libplaces.so+0x')"
mkdir -p debug
cp kept/one.so debug/libplaces.so
asked both | "$probe" > got 2> notices || fail "both"
wanted both | diff - got || fail "the kept copy of the first library"
ok "and names where a copy of it is kept"
rm debug/libplaces.so

# A stripped library: exported names only, and no wrong ones.
nm -D libs/libplaces.so | grep -q ' T no_size$' || fail "no such symbol"
strip libs/libplaces.so
asked only.2 | "$probe" > got 2> notices || fail "stripped library"
same "what is not exported is not guessed" 1 "$(grep -c '^libplaces.so+0x' got)"
same "what is exported is named" 2 "$(grep -c '^run_places:0$' got)"

if command -v g++ > /dev/null || [ -n "${CI:-}" ]; then
  g++ -O2 -g -fPIC -shared "$here/places.cc" -o libs/libcc.so
  ./host "$PWD/libs/libcc.so" > places
  grep libcc places > only
  agrees "C++ names are demangled" only 3
  strip --strip-debug libs/libcc.so
  names_only "and without DWARF" only
else
  echo "skipped: there is no g++ for the C++ names"
fi

# Things in a module's place that are no files to read.
mkfifo fifo
printf '%s\t\t1\t0\t10\n' "$PWD/fifo" /dev/zero "$PWD" "$here/host.c" \
  "$PWD/nothing" > odd
timeout 20 "$probe" < odd > got 2> notices || fail "odd files"
same "no names from what is no file" 5 "$(grep -c '+0x10$' got)"
same "each is said" 5 "$(wc -l < notices)"

# The kernel's own library.
grep '^linux-vdso' places.1 > only || fail "there is no vDSO here"
agrees "the vDSO" only 1
sed 's/\(\t[0-9a-f]*\)[0-9a-f]\t/\1\t/' only > other # An id cut short.
asked other | "$probe" > got 2> notices || fail "another vDSO"
grep -q 'vdso.*: not used' notices || fail "another vDSO: $(cat notices)"
same "the vDSO of another kernel is not named" 1 \
  "$(grep -c '^linux-vdso.so.1+0x' got)"

# A file of which the reader dies, and one that takes for ever.
compile whole
./whole > places
for way in 'abort();' 'for (;;) pause();'; do
  printf '#include <stdlib.h>\n#include <unistd.h>\n
    void *dwarf_begin_elf(void);
    void *dwarf_begin_elf(void) { %s }\n' "$way" |
    "$cc" -shared -fPIC -x c - -o bad.so
  cp places two
  sed 's/whole/host/' places.1 | grep '/host' >> two
  asked two | LD_PRELOAD=$PWD/bad.so "$probe" -t 1 > got 2> notices ||
    fail "a bad file: $(cat notices)"
  wanted two | sed 's/^.*;//; s/:[0-9]*$/:0/' | diff - got ||
    fail "names after a bad file"
  same "$way: names remain, for this file and the next" 2 \
    "$(grep -cE '/(whole|host): (its reader died of signal 6|reading took more than 1 s): names without lines' notices)"
done
printf 'int elf_kind(void); int elf_kind(void) { return *(volatile int *)8; }' |
  "$cc" -shared -fPIC -x c - -o bad.so
asked places | LD_PRELOAD=$PWD/bad.so "$probe" > got 2> notices ||
  fail "a worse file: $(cat notices)"
same "where nothing can be read, there are offsets" "$(wc -l < places)" \
  "$(grep -c '+0x' got)"
grep -q '/whole: its reader died of signal 11: no names' notices ||
  fail "not said: $(cat notices)"
