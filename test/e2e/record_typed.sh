#!/bin/sh
# ljprof record as people type it: a Lua script for a program, sizes with units,
# mistyped options, programs that are not there, outputs that cannot be. What is
# wrong is said in one line, before the program runs, with what to type instead.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
luajit=$BUILD_DIR/bin/luajit
folder=$(realpath "$BUILD_DIR/bin")

# Scripts run under our luajit, with their arguments.
cat > app.lua << 'END'
io.open("ran", "w"):write(jit.version, " ", misc and "ours", " ", ...)
local status = misc.sysprof.status
while status().state ~= "idle" and status().samples == 0 and os.clock() < 10 do end
END
# ran WHAT ARGUMENT COMMAND...: the script has run and was recorded.
ran() {
  what=$1 argument=$2
  shift 2
  rm -f ran ./*.ljp
  "$ljprof" record "$@" > out 2> err || fail "$what: $(cat err)"
  same "$what" "ours $argument" "$(sed 's/.* ours/ours/' ran)"
  file=$(sed -n 's/^ljprof record: next: ljprof report //p' err)
  [ -n "$file" ] || fail "$what: no command to type next: $(cat err)"
  eval "file=$file" # as a shell reads it
  "$ljprof" check "$file" > check.txt || fail "$what: $(cat check.txt)"
}
ran "a script" "--memory" app.lua --memory
case $file in
app-[0-9]*-[0-9]*-[0-9]*.ljp) ok "its file is named after it: $file" ;;
*) fail "the file's name is '$file'" ;;
esac
ran "a script by its path" "x" --memory ./app.lua x
ran "a script of luajit" "x" "$luajit" app.lua x
same "its file is named after the script" app "${file%%-*}"
ran "options of luajit before a script" "x" "$luajit" -l jit -Ohotloop=7 app.lua x
same "its file is named after the script" app "${file%%-*}"
mkdir "a folder"
cp app.lua "a folder/it's.lua"
ran "a name with blanks" "x" "a folder/it's.lua" x
cp app.lua ./-e.lua
ran "a name like an option" "x" -- -e.lua x
"$luajit" -b app.lua compiled
ran "bytecode" "x" ./compiled x
chmod +x app.lua
ran "a script without a first line for the kernel" "x" ./app.lua x
(echo "#!$folder/luajit" && cat app.lua) > own.lua
ran "a script that is not executable" "x" ./own.lua x
chmod +x own.lua
ran "a script with an interpreter" "x" own.lua x
refuses "an error in a script is its own" 1 "cannot open" \
  "$ljprof" record "$luajit" nothing.lua
# The command that is told is the one to type.
"$ljprof" record --memory --every -o "it's \$(one).ljp" app.lua 2> err || fail "$(cat err)"
PATH=$folder:$PATH sh -c "$(sed -n 's/^ljprof record: next: //p' err)" \
  > out 2> err.txt || fail "the next command: $(cat err err.txt)"
ok "the command that is told works: $(tail -n 1 err)"

# Two at the same moment.
rm -f ./*.ljp
"$ljprof" record app.lua 2> err1 &
"$ljprof" record app.lua 2> err2 || fail "$(cat err2)"
wait $! || fail "$(cat err1)"
same "two recordings, two files" 2 "$(find . -name 'app-*.ljp' | wc -l)"

# What is not there.
refuses "no such program" 127 "nothing: No such file or directory in the folders of PATH" \
  "$ljprof" record nothing
refuses "no such script" 127 "./nothing.lua: No such file" \
  "$ljprof" record ./nothing.lua
refuses "luajit is not in PATH" 127 "type 'ljprof record $folder/luajit ...'" \
  env PATH=/none "$ljprof" record luajit app.lua
cp "$luajit" here
refuses "a program of this folder" 127 "type 'ljprof record ./here'" \
  "$ljprof" record here
chmod -x here
refuses "a file that is not executable" 126 "'ljprof record luajit ./here'" \
  "$ljprof" record ./here
refuses "a folder" 126 "is a folder" "$ljprof" record "./a folder"
printf '#!/none/lua\nprint(1)\n' > odd.lua
chmod +x odd.lua
refuses "no interpreter" 127 "but not the interpreter or loader that it names" \
  "$ljprof" record odd.lua
refuses "no name" 127 "No such file" "$ljprof" record ""

# What cannot be written. The script must not run.
rm -f ran
refuses "no folder for the output" 1 \
  "cannot write $PWD/none/x.ljp: No such file or directory (name another" \
  "$ljprof" record -o none/x.ljp app.lua
refuses "a folder that is a file" 1 "cannot write $PWD/app.lua/x: Not a dir" \
  "$ljprof" record -o app.lua/x app.lua
ln -s none/x link
refuses "a link into nothing" 1 "cannot write $PWD/link: No such file" \
  "$ljprof" record --force -o link app.lua
if [ "$(id -u)" != 0 ]; then
  mkdir closed
  chmod 555 closed
  refuses "a closed folder" 1 "cannot write $PWD/closed/x: Permission denied" \
    "$ljprof" record -o closed/x app.lua
fi
[ ! -e ran ] || fail "it ran"

# Sizes.
sampled() {
  "$ljprof" record --force -o size.ljp --memory --sample "$1" app.lua \
    2> err || fail "--sample $1: $(cat err)"
  same "--sample $1" "$2" "$("$ljprof" dump size.ljp |
    sed -n 's/.*key="option.memory.sample_bytes" value="\([^"]*\)"/\1/p')"
}
sampled 4099 4099
sampled 64k 65536
sampled 1.5K 1536
sampled 2MiB 2097152
sampled 1GB 1073741824
sampled 7B 7
for wrong in 64q k -1k 0 1e99 nan 0x10 '' '1 k' 64kk 0.3 64ki 1T; do
  refuses "--sample '$wrong'" 2 "sample is '$wrong', but must be a number of by" \
    "$ljprof" record --memory --sample "$wrong" app.lua
done
"$ljprof" record --force -o size.ljp --rotate-bytes 64k app.lua 2> err ||
  fail "--rotate-bytes: $(cat err)"
refuses "segments too small" 2 "must be a number of bytes from 4096" \
  "$ljprof" record --rotate-bytes 3.9k app.lua

# A file in this folder is told as it was typed.
rm -f ./*.ljp
"$ljprof" record -o here.ljp app.lua > out 2> err || fail "$(cat err)"
grep -q ': here\.ljp$' err || fail "another name: $(cat err)"
refuses "a file that is there" 1 "record: here.ljp exists (use --force" \
  "$ljprof" record -o here.ljp app.lua

# A program that was too short for a sample has nothing to report.
echo 'local t = {}' > short.lua
"$ljprof" record --force -o short.ljp --interval 60000 short.lua 2> err ||
  fail "$(cat err)"
grep -q 'note: no sample was taken, so there is nothing to report' err ||
  fail "not told: $(cat err)"
same "no command to type next" "" "$(grep next: err || :)"
"$ljprof" record --force -o short.ljp --interval 60000 --memory --every \
  short.lua 2> err || fail "$(cat err)"
same "events of memory can be reported" 1 "$(grep -c 'next: ' err)"

# Options behind the script are the script's.
behind() { # WHAT NOTE ARGUMENT...: what is told, and the next command.
  what=$1 note=$2
  shift 2
  "$ljprof" record --force -o here.ljp "$@" 2> err || fail "$what: $(cat err)"
  same "$what" "$note" "$(sed -n 's/^ljprof record: note: \(.*\), since it.*/\1/p' err)"
  same "$what: the script has it" "$(cat wanted)" "$(sed 's/.* ours //' ran)"
}
echo "--memory" > wanted
behind "an option behind the script" "--memory is passed to app.lua" \
  app.lua --memory
behind "behind a program's script" "--memory is passed to $luajit" \
  "$luajit" app.lua --memory
behind "the script's, after --" "" -- app.lua --memory
echo "--interval=3--every" > wanted
behind "an option with a value" "--interval is passed to app.lua" \
  app.lua --interval=3 --every
echo "--memories-xy" > wanted
behind "an option that is not record's" "" app.lua --memories -x y

# Options.
refuses "letters in the wrong order" 2 "did you mean --sample?" \
  "$ljprof" record --sampel 64k app.lua
refuses "an option cut short" 2 "'--mem': did you mean --memory?" \
  "$ljprof" record --mem app.lua
refuses "with a value" 2 "did you mean --interval?" \
  "$ljprof" record --intervall=3 app.lua
refuses "another command" 2 "'--leak': did you mean --leaks?" \
  "$ljprof" report --leak x.ljp
refuses "a short one like none" 2 "'--foo' (see ljprof record --help)" \
  "$ljprof" record --foo app.lua
refuses "nothing like it" 2 "'--xyzzy' (see ljprof record --help)" \
  "$ljprof" record --xyzzy app.lua

# Children.
"$ljprof" record -o parent.ljp "$luajit" -e "
  for i = 1, 3 do os.execute('\"$luajit\" app.lua') end" > out 2> err ||
  fail "$(cat err)"
grep -q 'note: 3 processes that .* started loaded .* (--children records' err ||
  fail "the children are not told: $(cat err)"
ok "children that could be recorded are told"
refuses "a shell that starts two" 1 "not sh, but 2 processes that it started" \
  "$ljprof" record sh -c "'$luajit' app.lua; '$luajit' app.lua"
"$ljprof" record --children --memory --every -o tree.ljp sh -c \
  "'$luajit' app.lua; '$luajit' app.lua" 2> err || fail "$(cat err)"
file=$(sed -n 's/^ljprof record: next: ljprof report \([^ ]*\) .*/\1/p' err)
"$ljprof" report "$file" > out || fail "the next command: $(cat err)"
grep -q "'ljprof merge -o FILE tree.ljp\*' joins" err || fail "$(cat err)"
ok "the files of children are told"
echo "passed: $passed"
