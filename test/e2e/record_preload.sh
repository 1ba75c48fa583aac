#!/bin/sh
# Where ljprof record preloads our library for one program, other programs run
# without it: one with another Lua, and what the program executes. The program
# itself, executed again, has it with --children. Where the library cannot get
# in, or another LuaJIT is used all the same, that is said.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/places_lib.sh"
ours=$(realpath "$BUILD_DIR/lib")/libluajit-5.1.so.2

# Another Lua, with functions of the same names, in the folder of LuaJIT.
cat > lua54.c << 'END'
#include <stdlib.h>
static int state;
void *lua_newstate(void) { return &state; }
void *luaL_newstate(void) { return lua_newstate(); }
int lua_pcall(void *L) { return L == &state ? 0 : 3; }
END
cat > host54.c << 'END'
#include <stdio.h>
void *luaL_newstate(void);
int lua_pcall(void *, int, int, int);
int main(void)
{
  int code = lua_pcall(luaL_newstate(), 0, 0, 0);
  puts(code ? "LuaJIT" : "Lua");
  return code;
}
END
link opt/luajit/lib/liblua5.4.so.0 -shared -fPIC lua54.c \
  -Wl,-soname,liblua5.4.so.0
link host54 host54.c -Wl,"$old",-rpath,"$own" "$own/liblua5.4.so.0"
link export54 host54.c lua54.c -Wl,"$old",-rpath,"$own" -Wl,-E
for host in host54 export54; do
  "$ljprof" record --force -o p.ljp ./$host > out 2> err && fail "recorded"
  same "$host: another Lua keeps its functions" Lua "$(cat out)"
  case $host in
  host54) lua=$own/liblua5.4.so.0 ;;
  *) lua=$host ;;
  esac
  same "$host: it is said" 1 \
    "$(grep -c "not preloaded, since .*$lua has another Lua: .* --preload" err)"
done

# again HOW [COMMAND...]: works, or executes itself for that, in this process or
# in a child; or executes the command.
cat > again.c << 'END'
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int run(void);
int main(int argc, char **argv)
{
  int status = 0;
  if (argc < 2)
    return run();
  if (strcmp(argv[1], "execute") == 0)
    execl("/proc/self/exe", argv[0], (char *)0);
  else if (fork() == 0 && strcmp(argv[1], "launch") == 0)
    execl(argv[0], argv[0], (char *)0);
  else if (wait(&status) < 0)
    execvp(argv[2], argv + 2);
  return WEXITSTATUS(status);
}
END
link again again.c run.c -Wl,"$old",-rpath,"$own" "$own/libluajit-5.1.so.2"
for how in execute launch; do
  refuses "$how: without --children" any "other programs that it executes)" \
    "$ljprof" record --force -o p.ljp ./again $how
  same "$how: it ran as usual" "foreign unset unset" "$(cat out)"
  rm -f p.ljp*
  "$ljprof" record --children -o p.ljp ./again $how 2> err ||
    fail "$how: $(cat err)"
  same "$how: with --children" "ours $ours unset" "$(cat out)"
  "$ljprof" report p.ljp* > report.txt || fail "$how: no report"
  grep -q ' work ' report.txt || fail "$how: $(cat report.txt)"
done

# What else it executes is as if nobody had preloaded anything.
cat > name.sh << 'END'
#!/bin/sh
cat /proc/$$/comm
tr '\0' ' ' < /proc/$$/cmdline
echo "$0 $* ${LD_PRELOAD-unset}"
grep -c libluajit /proc/$$/maps
exit 0
END
cat > behind.sh << 'END'
#!./name.sh an option
END
chmod +x name.sh behind.sh
for words in ./host54 "./name.sh a b" "./behind.sh c" "env ./name.sh" \
  "sh -c ./host54"; do
  # shellcheck disable=SC2086 # words
  ./again run $words > wanted || fail "$words: $?"
  # shellcheck disable=SC2086
  "$ljprof" record --children --force -o p.ljp ./again run $words \
    > out 2> err && fail "recorded"
  same "a child: $words" "$(cat wanted)" "$(cat out)"
done
echo 'int other_preload;' > other.c
link other.so -shared -fPIC other.c
export LD_PRELOAD="$SCRATCH/other.so"
"$ljprof" record --children --force -o p.ljp ./again run ./name.sh > out \
  2> err && fail "recorded"
same "the rest of the list stays" 1 "$(grep -c "name.sh  $LD_PRELOAD" out)"
unset LD_PRELOAD

# A LuaJIT that is opened by its path.
cat > path.c << 'END'
#include <dlfcn.h>
int main(int argc, char **argv)
{
  void *lib = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
  void *(*state)(void) = lib ? (void *(*)(void))dlsym(lib, "luaL_newstate") : 0;
  return !state || !state();
}
END
link path path.c -ldl
refuses "a LuaJIT that is opened by its path" any \
  "but runs the LuaJIT of $own/libluajit-5.1.so.2 (put a link" \
  "$ljprof" record --preload --force -o p.ljp ./path "$own/libluajit-5.1.so.2"
refuses "no other LuaJIT" any "opened the libraries of no VM" \
  "$ljprof" record --preload --force -o p.ljp ./path /none

# Another language, by how LuaJIT was built. A word of what the two ways differ in
# is enough: it is taken away or added.
link plain main.c run.c -Wl,"$old",-rpath,"$own" "$own/libluajit-5.1.so.2"
"$ljprof" record --force -o p.ljp ./plain 2> err || fail "$(cat err)"
same "the same way: nothing is said" 0 "$(grep -c LUA52COMPAT err || :)"
word=$(printf '\006rawlen')
if LC_ALL=C grep -qaF "$word" "$own/libluajit-5.1.so.2"; then
  LC_ALL=C sed -i "s/$word/$(printf '\006rawLEN')/" "$own/libluajit-5.1.so.2"
else
  echo "$word" >> "$own/libluajit-5.1.so.2"
fi
"$ljprof" record --force -o p.ljp ./plain 2> err || fail "$(cat err)"
same "another way: it is said" 1 \
  "$(grep -c "note: $own/libluajit-5.1.so.2 .* LUAJIT_ENABLE_LUA52COMPAT" err)"
link system main.c run.c -L"$own" -l:libluajit-5.1.so.2
LD_LIBRARY_PATH=$own "$ljprof" record --force -o p.ljp ./system 2> err ||
  fail "$(cat err)"
same "another way, found elsewhere: it is said" 1 \
  "$(grep -c "note: $own/libluajit-5.1.so.2 .* LUAJIT_ENABLE_LUA52COMPAT" err)"
