/*
** Tells `ljprof record` what became of its request; see told.h. A line is
** "L1234" (process 1234 has loaded the library), "R1234 TEXT" (the session of
** process 1234 was refused, for the reason TEXT), "A1234 PATH" (process 1234 ends,
** and has loaded another LuaJIT from PATH) or "F1234" (fork() made process 1234,
** which is not to be recorded).
*/
#include "profilers/session/told.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "profilers/session/another.h"
#include "profilers/session/preloaded.h"

/* The pipe of the record. */
struct told_pipe {
  char path[64];
  unsigned long long device, inode;
};

/* Another process may have the number of the record by now, and any file there:
** only the very pipe is opened. */
static bool told_is_pipe(const struct told_pipe *pipe, const struct stat *st)
{
  return S_ISFIFO(st->st_mode) && st->st_dev == pipe->device &&
         st->st_ino == pipe->inode;
}

/* The request, behind what it says of LD_PRELOAD. NULL: there is no record. */
static const char *told_request(struct told_pipe *pipe)
{
  unsigned pid, fd;
  const char *request = ljp_preloaded_request(secure_getenv("LJPROF_RECORD"));
  if (!request || sscanf(request, "told=%u:%u:%llu:%llu;", &pid, &fd,
                         &pipe->device, &pipe->inode) != 4)
    return NULL;
  snprintf(pipe->path, sizeof pipe->path, "/proc/%u/fd/%u", pid, fd);
  return request;
}

/* Little stack, and only what a child of fork() may call. Keeps errno. */
static void told_write(const struct told_pipe *pipe, const char *line,
                       size_t bytes)
{
  /* To read, too: a pipe without a reader raises SIGPIPE. */
  enum { FLAGS = O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };
  struct stat st;
  int before = errno;
  if (!stat(pipe->path, &st) && told_is_pipe(pipe, &st)) {
    int fd = open(pipe->path, FLAGS);
    if (fd >= 0 && !fstat(fd, &st) && told_is_pipe(pipe, &st) &&
        write(fd, line, bytes) < 0)
      errno = before; /* the record will know less */
    if (fd >= 0)
      close(fd);
  }
  errno = before;
}

/* The entry, with the note (profilers/join/entry.c), belongs to each program that
** is linked with the static library, and nothing calls it. */
__asm__(".pushsection .text\n"
        ".reloc ., R_X86_64_NONE, ljp_join_entry\n"
        ".popsection\n");

void ljp_told(char what, const char *text)
{
  struct told_pipe pipe;
  char line[600];
  int before = errno;
  if (told_request(&pipe)) {
    int n = snprintf(line, sizeof line - 1, "%c%ld%s%s", what, (long)getpid(),
                     text ? " " : "", text ? text : "");
    size_t bytes =
        n < (int)sizeof line - 1 ? (size_t)(n < 0 ? 0 : n) : sizeof line - 2;
    line[bytes++] = '\n';
    told_write(&pipe, line, bytes);
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

/* -- Children of fork() that are not to be recorded
** ----------------------------- */

/* Set before the program begins. */
static struct told_pipe told_forks_pipe;
static _Atomic unsigned told_forks;

static void told_fork_parent(void)
{
  atomic_fetch_add(&told_forks, 1);
}

/* The first ones are told, for one of them may be a daemon, which runs on when
** the program has ended. The child may run on a small stack, and may call little:
** the constructor has called everything before, so nothing is left to bind. */
static void told_fork_child(void)
{
  enum { MAX_FORKS = 64 };
  char line[24], *end = line + sizeof line, *at = end;
  if (atomic_load(&told_forks) >= MAX_FORKS)
    return;
  *--at = '\n';
  for (unsigned pid = (unsigned)getpid(); pid; pid /= 10)
    *--at = (char)('0' + pid % 10);
  *--at = 'F';
  told_write(&told_forks_pipe, at, (size_t)(end - at));
}

/* -- Begin and end of the program
** ----------------------------------------------- */

__attribute__((destructor)) static void told_ended(void)
{
  struct told_pipe pipe;
  char path[512];
  if (told_request(&pipe) && ljp_another_luajit(path, sizeof path))
    ljp_told('A', path);
}

static void told_begin(char **argv)
{
  if (!ljp_preloaded_begin(argv))
    return;
  ljp_told('L', NULL);
  const char *request = told_request(&told_forks_pipe);
  if (request && !strstr(request, ";children=true;"))
    pthread_atfork(NULL, told_fork_parent, told_fork_child);
}

#ifdef __GLIBC__ /* It passes main()'s arguments. */
__attribute__((constructor)) static void told_loaded(int argc, char **argv)
{
  (void)argc;
  told_begin(argv);
}
#else
__attribute__((constructor)) static void told_loaded(void)
{
  told_begin(NULL);
}
#endif
