/*
** Tells `ljprof record` what became of its request; see told.h. A line is
** "L1234" (process 1234 has loaded the library) or "R1234 TEXT" (the session of
** process 1234 was refused, for the reason TEXT).
*/
#include "profilers/session/told.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "src/base/preload.h"

/* Another process may have the number of the record by now, and any file there:
** only the very pipe is opened. */
static bool told_is_pipe(const struct stat *st, unsigned long long device,
                         unsigned long long inode)
{
  return S_ISFIFO(st->st_mode) && st->st_dev == device && st->st_ino == inode;
}

/* The entry, with the note (profilers/join/entry.c), belongs to each program that
** is linked with the static library, and nothing calls it. */
__asm__(".pushsection .text\n"
        ".reloc ., R_X86_64_NONE, ljp_join_entry\n"
        ".popsection\n");

void ljp_told(char what, const char *text)
{
  /* To read, too: a pipe without a reader raises SIGPIPE. */
  enum { FLAGS = O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };
  enum { ONCE = sizeof LJP_PRELOAD_ONCE - 1 };
  const char *request = secure_getenv("LJPROF_RECORD");
  unsigned pid, fd;
  unsigned long long device, inode;
  char path[64], line[600];
  struct stat st;
  int before = errno;
  if (request && strncmp(request, LJP_PRELOAD_ONCE, ONCE) == 0)
    request += ONCE;
  if (!request ||
      sscanf(request, "told=%u:%u:%llu:%llu;", &pid, &fd, &device, &inode) != 4)
    return;
  snprintf(path, sizeof path, "/proc/%u/fd/%u", pid, fd);
  int n = snprintf(line, sizeof line - 1, "%c%ld%s%s", what, (long)getpid(),
                   text ? " " : "", text ? text : "");
  size_t bytes =
      n < (int)sizeof line - 1 ? (size_t)(n < 0 ? 0 : n) : sizeof line - 2;
  line[bytes++] = '\n';
  if (!stat(path, &st) && told_is_pipe(&st, device, inode)) {
    int pipe = open(path, FLAGS);
    if (pipe >= 0 && !fstat(pipe, &st) && told_is_pipe(&st, device, inode) &&
        write(pipe, line, bytes) < 0)
      errno = before; /* the record will know less */
    if (pipe >= 0)
      close(pipe);
  }
  errno = before;
}

/* Little stack: a child of fork() may run on a coroutine. */
void ljp_told_refused(const char *text)
{
  static const char begin[] = "ljprof: not recorded: ", end[] = "\n";
  const struct iovec line[] = {
      {(void *)(uintptr_t)begin, sizeof begin - 1},
      {(void *)(uintptr_t)text, strlen(text)},
      {(void *)(uintptr_t)end, 1},
  };
  const char *request = secure_getenv("LJPROF_RECORD");
  if (!request || !*request)
    return;
  ljp_told('R', text);
  if (writev(STDERR_FILENO, line, 3) < 0)
    return; /* nothing else can be done */
}

/* If `ljprof record` has put our library into LD_PRELOAD for this program only,
** removes it again: a process that the program starts may have another Lua,
** with functions of the same names. No other thread exists yet. */
static void told_leave_preload(void)
{
  const char *request = secure_getenv("LJPROF_RECORD");
  char *list = secure_getenv("LD_PRELOAD");
  if (!request || !list ||
      strncmp(request, LJP_PRELOAD_ONCE, sizeof LJP_PRELOAD_ONCE - 1) != 0)
    return;
  size_t len = strcspn(list, ": ");
  static const char name[] = "/" LJP_LIBRARY_NAME;
  if (len < sizeof name - 1 ||
      memcmp(list + len - (sizeof name - 1), name, sizeof name - 1) != 0)
    return;
  if (list[len])
    memmove(list, list + len + 1, strlen(list + len + 1) + 1);
  else
    unsetenv("LD_PRELOAD");
}

__attribute__((constructor)) static void told_loaded(void)
{
  told_leave_preload();
  ljp_told('L', NULL);
}
