# shellcheck shell=sh
# For tests of programs that find LuaJIT in a place of their own: $own, with the
# base's library. The sources of programs and modules are written here, and each
# test links what it needs.
# shellcheck disable=SC2034 # tests use them
ljprof=$BUILD_DIR/bin/ljprof
base=$BUILD_DIR/unpatched/lib/libluajit-5.1.so.2
CC=${CC:-cc}
[ -e "$base" ] || {
  echo "no unpatched library to find"
  exit 0
}

mkdir -p opt/luajit/lib opt/mid
cp "$base" opt/luajit/lib/libluajit-5.1.so.2
own=$SCRATCH/opt/luajit/lib
cat > run.c << 'END'
#include <stdlib.h>
void *luaL_newstate(void);
void luaL_openlibs(void *);
int luaL_loadfile(void *, const char *);
int lua_pcall(void *, int, int, int);
void lua_close(void *);
int run(void)
{
  void *L = luaL_newstate();
  if (!L)
    return 3;
  luaL_openlibs(L);
  if (luaL_loadfile(L, getenv("SCRIPT")) || lua_pcall(L, 0, 0, 0))
    return 4;
  lua_close(L);
  return 0;
}
END
cat > main.c << 'END'
int run(void);
int main(void) { return run(); }
END
cat > opens.c << 'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
  void *module = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
  int (*run)(void) = module ? (int (*)(void))dlsym(module, "run") : 0;
  if (!run)
    fprintf(stderr, "%s\n", dlerror());
  return run ? run() : 2;
}
END
# The script works until the profiler has had CPU time to sample, and tells what
# environment the program and its children have.
cat > work.lua << 'END'
local stop = os.clock() + 0.05
local function work() local s = 0 for i = 1, 1e4 do s = s + i % 7 end return s end
repeat work() until os.clock() > stop
local out = assert(io.open(os.getenv("OUT"), "w"))
local child = io.popen("echo ${LD_PRELOAD-unset}")
out:write(misc and "ours" or "foreign", " ", os.getenv("LD_PRELOAD") or "unset",
  " ", child:read("*l"), "\n")
out:close()
END
export SCRIPT="$SCRATCH/work.lua" OUT="$SCRATCH/out"
old=--disable-new-dtags new=--enable-new-dtags

# link OUT FILES... : the rest are options of the compiler.
link() {
  out=$1
  shift
  "$CC" -o "$out" "$@" || fail "cannot link $out"
}

# recorded WHAT WANTED COMMAND...: the command alone runs the other LuaJIT, and
# under ljprof record ours, with the environment as WANTED.
recorded() {
  what=$1 wanted=$2
  shift 2
  rm -f out
  "$@" || fail "$what: does not run: $?"
  [ "$(cut -d' ' -f1 out)" = foreign ] || fail "$what: $(cat out)"
  "$ljprof" record --force -o p.ljp "$@" 2> err || fail "$what: $(cat err)"
  same "$what: recorded" "ours $wanted" "$(cat out)"
  "$ljprof" report p.ljp > report.txt || fail "$what: no report"
  grep -q ' work ' report.txt || fail "$what: $(cat report.txt)"
}
