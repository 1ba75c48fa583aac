#!/bin/sh
# make-engines takes a server that is given or in PATH, builds what is pinned once, and
# says in one line why one cannot be built. A fake Go stands for the real one.
. "$(dirname "$0")/lib.sh"
script=$SOURCE_DIR/test/engines/make-engines
mkdir bin proxy tools
for tool in awk cat chmod cp dirname env grep head mkdir mv rm sed sort tail touch tr wc; do
  ln -s "$(command -v $tool)" tools
done
unset LJPROF_PYROSCOPE LJPROF_PARCA GOMODCACHE GOCACHE GOFLAGS JOBS
export PATH="$SCRATCH/bin:$SCRATCH/tools"
export PROXY="$SCRATCH/proxy" LJPROF_ENGINES="$SCRATCH/engines.txt"
cat > engines.txt << 'END'
pyroscope go 1.25.7
pyroscope module v1.2.3 h1:aaa= . example.com/pyroscope
pyroscope module v0.4.0 h1:bbb= api example.com/pyroscope/api
parca go 1.25.0
parca module v5.6.7 h1:ccc= . example.com/parca
END
# A module is a file of the "proxy" that holds its checksum.
mkdir -p proxy/example.com/pyroscope proxy/dir
echo h1:aaa= > proxy/example.com/pyroscope@v1.2.3
echo h1:bbb= > proxy/example.com/pyroscope/api@v0.4.0
echo h1:ccc= > proxy/example.com/parca@v5.6.7
touch proxy/dir/source
chmod 555 proxy/dir
cat > go << 'END'
#!/bin/sh
echo "$*" >> "$PROXY/log"
case $1:$2 in
env:GOVERSION) echo "go${FAKE_GO:-1.26.8}" ;;
env:GOTOOLCHAIN) echo "${GOTOOLCHAIN:-local}" ;;
mod:download)
  [ -f "$PROXY/$4" ] || {
    printf '{\n\t"Version": "v1",\n\t"Error": "%s: no route to host\\n\\tor so"\n}\n' "$4"
    exit 1
  }
  printf '{\n\t"Dir": "%s",\n\t"Sum": "%s"\n}\n' "$PROXY/dir" "$(cat "$PROXY/$4")"
  ;;
build:*)
  for last in "$@"; do :; done
  [ ! -f "$PROXY/broken-${last##*/}" ] || {
    echo "go: downloading example.com/x v1.0.0"
    echo "x.go:5:7: no such thing" >&2
    exit 1
  }
  [ -f source ] && [ -w source ] || exit 1
  while [ "$1" != -o ]; do shift; done
  printf '#!/bin/sh\necho %s\n' "$last" > "$2"
  chmod +x "$2"
  ;;
esac
END
chmod +x go
go_asked() {
  grep -c "^$1" proxy/log || :
}

refuses "no Go" 1 "pyroscope v1.2.3 must be built, and there is no Go: install Go 1.25.7 or newer" \
  "$script" cache
mv go bin
refuses "an old Go" 1 "needs Go 1.25.7 or newer, and this is Go 1.19.8:" \
  env FAKE_GO=1.19.8 GOTOOLCHAIN=auto "$script" cache
refuses "a Go that may not fetch a newer one" 1 "and this is Go 1.24.4:" \
  env FAKE_GO=1.24.4 "$script" cache
refuses "a variable that names nothing" 1 "LJPROF_PARCA names no program: /none" \
  env LJPROF_PARCA=/none "$script" cache
refuses "a folder with a quote" 1 "Go cannot work in a folder with quotes" "$script" "a'b"

"$script" --look cache > out.txt && fail "--look: there is nothing"
same "--look builds nothing" '' "$(cat out.txt)"
same "a Go that fetches a newer one builds both" "pyroscope $SCRATCH/cache/pyroscope-v1.2.3
parca $SCRATCH/cache/parca-v5.6.7" \
  "$(FAKE_GO=1.24.4 GOTOOLCHAIN=auto "$script" cache 2> said)"
same "from the right folder" ./cmd/parca "$(cache/parca-v5.6.7)"
same "only the programs and their logs stay" \
  "parca-v5.6.7 parca.log pyroscope-v1.2.3 pyroscope.log" "$(cd cache && echo *)"
same "builds" 2 "$(go_asked build)"
mv bin/go go
same "without Go and the proxy, what was built is found" \
  "$("$script" cache)" "$("$script" --look cache)"
printf '#!/bin/sh\n' > tools/parca
chmod +x tools/parca
same "one in PATH is taken" "parca $SCRATCH/tools/parca" "$("$script" cache | grep parca)"
same "and before it one that is named" "parca $SCRATCH/tools/cat" \
  "$(LJPROF_PARCA=$SCRATCH/tools/cat "$script" cache | grep parca)"
rm tools/parca
mv go bin

sed -i 's/v1.2.3 h1:aaa=/v1.2.4 h1:ddd=/' engines.txt
refuses "a version that is not there" 1 \
  "cannot fetch example.com/pyroscope v1.2.4: example.com/pyroscope@v1.2.4: no route to host;" \
  "$script" cache
echo h1:aaa= > proxy/example.com/pyroscope@v1.2.4
refuses "another checksum than the pinned one" 1 "has the wrong checksum h1:aaa=" \
  "$script" cache
echo h1:ddd= > proxy/example.com/pyroscope@v1.2.4
touch proxy/broken-pyroscope
refuses "what does not build" 1 "pyroscope v1.2.4 does not build: x.go:5:7: no such thing" \
  "$script" cache
same "the earlier version stays meanwhile" ./cmd/pyroscope "$(cache/pyroscope-v1.2.3)"
rm proxy/broken-pyroscope
"$script" cache > out.txt 2> said || fail "$(cat said)"
same "a new version replaces it" \
  "parca-v5.6.7 parca.log pyroscope-v1.2.4 pyroscope.log" "$(cd cache && echo *)"

rm -r cache
touch proxy/broken-parca
same "Parca may fail, with a reason" \
  "parca - parca v5.6.7 does not build: x.go:5:7: no such thing (log: $SCRATCH/cache/parca.log)" \
  "$("$script" cache 2> said | grep parca)"
same "and is tried again" "$SCRATCH/cache/parca-v5.6.7" "$(
  rm proxy/broken-parca
  "$script" cache 2> said | sed -n 's/^parca //p'
)"
