/*
** Takes the chance out of a run of luajit: preloaded, it answers LuaJIT's
** getrandom() with bytes that follow from LJP_BENCH_SEED. Hash seeds and the
** places of machine code are then the same in each run, and so is the number
** of instructions. For benchmarks only.
*/
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>

long syscall(long number, ...);

__attribute__((visibility("default"))) long syscall(long number, ...)
{
  if (number != SYS_getrandom) {
    errno = ENOSYS;
    return -1;
  }
  va_list args;
  va_start(args, number);
  unsigned char *bytes = va_arg(args, unsigned char *);
  size_t size = va_arg(args, size_t);
  va_end(args);
  const char *text = getenv("LJP_BENCH_SEED");
  unsigned state = text ? (unsigned)atoi(text) : 1;
  for (size_t i = 0; i < size; i++) {
    state = state * 1103515245u + 12345u;
    bytes[i] = (unsigned char)(state >> 16);
  }
  return (long)size;
}
