#!/bin/sh
# Labels that programs set: what the Lua and C interfaces take, and that each
# label's share in CPU time, waits and memory is what the program itself measured.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
luajit=$BUILD_DIR/bin/luajit
here=$SOURCE_DIR/test/e2e

"$luajit" "$here/label_api.lua" > api.txt 2>&1 || fail "$(cat api.txt)"
ok "the Lua interface: $(cat api.txt)"

code=0
"$BUILD_DIR/bin/owner_host" > owners.txt 2>&1 || code=$?
case $code in
0) ok "threads that belong to a host's work inherit labels" ;;
77) ok "this LuaJIT knows no owners of threads" ;;
*) fail "owners: $(cat owners.txt)" ;;
esac

# More sets than a process can have.
cat > many.lua << 'EOF'
for i = 1, 10000 do
  assert(misc.profile.label { url = "/" .. i })
  if i > 9000 then
    local t = os.clock() + 0.0001
    repeat until os.clock() > t
  end
end
EOF
"$ljprof" record --force -o many.ljp "$luajit" many.lua 2> err.txt ||
  fail "$(cat err.txt)"
"$ljprof" report --by label:url many.ljp > many.txt 2>&1 || fail "$(cat many.txt)"
grep -qF 'labels are (other): 5904 times the program set labels beyond the 4096' \
  many.txt || fail "$(cat many.txt)"
awk '/ \(other\)$/ { exit ($3 + 0 > 80) ? 0 : 1 }' many.txt || fail "$(cat many.txt)"
ok "sets without end are (other), and that is said"

# shares FILE TRUTH KEY COLUMN POINTS OPTION...: compares the report's shares by a
# label with those that the program told.
shares() {
  file=$1 truth=$2 key=$3 column=$4 points=$5
  shift 5
  "$ljprof" report --json --top 0 --by "label:$key" "$@" "$file" > rows.json ||
    fail "report --by label:$key"
  sed -nE "s/^\{\"name\":\"([^\"]*)\",.*\"$column\":([0-9]+).*/\1 \2/p" rows.json \
    > rows.txt
  sed -n "s/^$key //p" "$truth" > wanted.txt
  awk -v points="$points" '
    FNR == NR { got[$1] = $2; next }
    { wanted[$1] = $2; all_wanted += $2; all_got += got[$1]; n++ }
    END {
      if (!n || !all_got) { print "nothing"; exit 1 }
      for (v in wanted) {
        a = 100 * got[v] / all_got
        b = 100 * wanted[v] / all_wanted
        d = a > b ? a - b : b - a
        text = text sprintf(" %s %.2f/%.2f", v, a, b)
        if (d > points) bad = 1
      }
      print text
      exit bad
    }' rows.txt wanted.txt > shares.txt || fail "$key: $(cat shares.txt)"
  ok "$key, percent in the report and in truth:$(cat shares.txt)"
}

for jit in -jon -joff; do
  "$ljprof" record --interval 0.2 --force -o cpu.ljp "$luajit" $jit \
    "$here/label_work.lua" cpu > cpu.txt 2> err.txt || fail "$(cat err.txt)"
  shares cpu.ljp cpu.txt route self_ns 2
  shares cpu.ljp cpu.txt tenant self_ns 2
done
"$ljprof" record --memory --every --force -o memory.ljp "$luajit" \
  "$here/label_work.lua" memory > memory.txt 2> err.txt || fail "$(cat err.txt)"
shares memory.ljp memory.txt route self_bytes 1 --alloc
shares memory.ljp memory.txt tenant self_bytes 1 --alloc
"$ljprof" record --memory --sample 4k --force -o sampled.ljp "$luajit" \
  "$here/label_work.lua" memory > memory.txt 2> err.txt || fail "$(cat err.txt)"
shares sampled.ljp memory.txt route self_bytes 8 --alloc
