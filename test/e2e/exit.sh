#!/bin/sh
# A program that calls exit() without lua_close() leaves a complete stream, even
# if the writer is busy at that moment. Here its rounds last so long that it
# nearly always is.
. "$(dirname "$0")/lib.sh"
CC=${CC:-cc}

cat > slow.c << 'EOF'
#include <dirent.h>
#include <dlfcn.h>
#include <unistd.h>
DIR *opendir(const char *name);
DIR *opendir(const char *name)
{
  DIR *(*real)(const char *);
  *(void **)&real = dlsym(RTLD_NEXT, "opendir");
  if (gettid() != getpid())
    usleep(200000);
  return real(name);
}
EOF
$CC -D_GNU_SOURCE -shared -fPIC slow.c -o slow.so -ldl
cat > leave.lua << 'EOF'
assert(misc[arg[1]].start{ path = arg[2], flush = 10 })
local t = os.clock()
while os.clock() < t + 0.05 do end
os.exit(7)
EOF
for what in sysprof memprof profile; do
  for i in 1 2 3; do
    got=0
    LD_PRELOAD=$SCRATCH/slow.so "$BUILD_DIR/bin/luajit" leave.lua $what \
      $what.$i || got=$?
    [ "$got" = 7 ] || fail "$what: exit code $got"
    "$BUILD_DIR/bin/ljprof" check $what.$i > check.txt 2>&1 ||
      fail "$what: $(tail -n 2 check.txt)"
  done
  ok "$what: the stream is complete"
done
