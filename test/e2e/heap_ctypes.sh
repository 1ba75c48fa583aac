#!/bin/sh
# cdata objects of a heap snapshot have the names of their C types, as tostring() shows
# them: in the views, in a session's file, after a merge, in exports.
. "$(dirname "$0")/lib.sh"
lua=$BUILD_DIR/bin/luajit
ljprof=$BUILD_DIR/bin/ljprof

cat > program.lua << 'END'
jit.off() -- Compiled code makes fewer objects: equal ones may become one.
local ffi = require("ffi")
ffi.cdef[[
struct point { double x, y; };
typedef struct { int a; } anonymous_t;
typedef struct named { int b[3]; } alias_t;
union either { int i; float f; };
enum color { RED, GREEN };
typedef struct point point_t;
typedef void (*callback_t)(int, struct point *);
]]
local made = {
  { "struct point", 101 }, { "point_t", 11 }, { "anonymous_t", 103 }, { "alias_t", 107 },
  { "union either", 109 }, { "enum color", 113 }, { "int32_t[100]", 127 },
  { "uint8_t[64]", 131 }, { "char[16]", 137 }, { "double[3][4]", 139 },
  { "struct point *", 149 }, { "int (*)[5]", 151 }, { "callback_t", 157 },
  { "const struct point *[7]", 163 }, { "uint64_t", 167 }, { "float", 173 },
  { "complex", 179 }, { "char **", 181 }, { "void *", 191 }, { "int[?]", 193, 9 },
  { "bool", 197 }, { "struct { int z; }", 199 },
}
keep = {}
for _, what in ipairs(made) do
  local ct = ffi.typeof(what[1])
  for _ = 1, what[2] do keep[#keep + 1] = what[3] and ct(what[3]) or ct() end
end
keep[#keep + 1] = ffi.typeof("int[7]")
if arg[2] then
  misc.memprof.start{ path = arg[1], every = true }
  assert(misc.memprof.snapshot{ wait = true, strings = tonumber(arg[3]) })
  assert(misc.memprof.stop())
else
  assert(misc.memprof.snapshot{ path = arg[1], wait = true })
end
END
cat > wanted.txt << 'END'
112 cdata struct point
103 cdata anonymous_t
107 cdata struct named
109 cdata union either
113 cdata enum color
127 cdata int32_t[100]
131 cdata uint8_t[64]
137 cdata char[16]
139 cdata double[3][4]
149 cdata struct point *
151 cdata int32_t (*)[5]
157 cdata void (*)()
163 cdata struct point *[7]
167 cdata uint64_t
173 cdata float
179 cdata complex
181 cdata char **
191 cdata void *
193 cdata int32_t[?]
197 cdata bool
END
sort wanted.txt > sorted.txt

# types FILE [OPTION]...: kinds of cdata with their numbers, into got.txt.
types() {
  "$ljprof" heap --top 1000 "$@" | sed -nE 's/^.* ([0-9]+)  (cdata .*)$/\1 \2/p' |
    sort > got.txt
}
# names WHAT FILE [OPTION]...
names() {
  what=$1
  shift
  types "$@"
  grep -q ' cdata ctype$' got.txt || fail "$what: no ctype in $(cat got.txt)"
  grep -v ' cdata struct #[0-9]*$\| cdata ctype$' got.txt > known.txt
  diff sorted.txt known.txt > diff.txt || fail "$what: $(cat diff.txt)"
  [ "$(grep -c '^199 cdata struct #[0-9]*$' got.txt)" = 1 ] || fail "$what: $(cat got.txt)"
  ok "$what: C types have names"
}

"$lua" program.lua alone.ljp || fail "the program"
names "a snapshot" alone.ljp
"$lua" program.lua session.ljp session || fail "the program in a session"
names "a session" session.ljp
"$ljprof" merge -o merged.ljp alone.ljp session.ljp || fail "merge"
names "merged, the first" merged.ljp --snapshot 1
names "merged, the second" merged.ljp --snapshot 2
"$ljprof" export --to heapsnapshot -o x.heapsnapshot alone.ljp 2> err.txt || fail "export"
grep -q '"cdata int32_t\[100\]"' x.heapsnapshot || fail "the export has no name"
"$ljprof" heap --path '^cdata struct point$' alone.ljp > out.txt
grep -q '^112 objects match' out.txt || fail "$(cat out.txt)"
ok "exports and searches have them"

# Without contents of strings, names of types are no exception.
"$lua" program.lua secret.ljp session 0 || fail "without strings"
types secret.ljp
grep -q 'point\|named\|either\|color\|anonymous' got.txt && fail "$(cat got.txt)"
grep -qx '127 cdata int32_t\[100\]' got.txt || fail "$(cat got.txt)"
ok "strings = 0 hides names of types"
