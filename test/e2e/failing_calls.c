/*
** For LD_PRELOAD: makes the n-th call of a program to malloc(), mmap(), clone(),
** open(), write() ... fail, and counts what is in use. glibc only.
**
** A test written in Lua declares the functions below by the FFI. The numbers are in
** shared memory, so calls of a copy of the process count, too. Freed blocks are not
** given out again for a while, so that writes to them are noticed.
*/
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* n 1: the next call fails; 0: none, they are only counted. */
EXPORT void failing_arm(long n, int how);
/* Returns the number of calls. All succeed from now on. */
EXPORT long failing_disarm(void);
/* The one that has failed; NULL: none. */
EXPORT const char *failing_name(void);
/* What is in use now; mapped: bytes of mmap(). */
EXPORT long failing_blocks(void);
EXPORT long failing_mapped(void);
EXPORT long failing_descriptors(void);
EXPORT long failing_threads(void);
/* The number of freed blocks that were written to. */
EXPORT long failing_spoiled(void);

/* What failing_arm() takes as how, or-ed. */
enum {
  FAIL_ONWARD = 1,     /* every call after the n-th fails, too */
  FAIL_NOT_WRITER = 2, /* calls of the session's writer do not count */
  FAIL_PREAD_ONLY = 4,
  FAIL_SLOW_WAITER = 8 /* the snapshot's thread pauses after each unlock */
};

enum { FREED_BLOCKS = 1024, FREED_BYTES = 4096, FREED_BYTE = 0xdb };

struct failing_shared {
  _Atomic bool armed;
  _Atomic long calls, at;
  _Atomic int how;
  char name[32];
};
static struct failing_shared *shared;

static _Atomic long blocks, mapped, spoiled;
static _Atomic unsigned long freed_next;
static void *_Atomic freed[FREED_BLOCKS];

/* -- Counting -------------------------------------------------------------- */

static bool failing_is(const char *thread)
{
  char name[16] = "";
  prctl(PR_GET_NAME, name);
  return strcmp(name, thread) == 0;
}

/* Is this call to fail? Sets errno then. */
static bool failing(const char *name, int error)
{
  int how = shared ? atomic_load(&shared->how) : 0;
  if (!shared || !atomic_load(&shared->armed) ||
      (how & FAIL_NOT_WRITER && failing_is("ljprof-writer")) ||
      (how & FAIL_PREAD_ONLY && strcmp(name, "pread") != 0))
    return false;
  long call = atomic_fetch_add(&shared->calls, 1) + 1;
  long at = atomic_load(&shared->at);
  if (!at || call < at || (call > at && !(how & FAIL_ONWARD)))
    return false;
  if (call == at)
    snprintf(shared->name, sizeof shared->name, "%s", name);
  errno = error;
  return true;
}

EXPORT void failing_arm(long n, int how)
{
  shared->name[0] = '\0';
  atomic_store(&shared->calls, 0);
  atomic_store(&shared->at, n);
  atomic_store(&shared->how, how);
  atomic_store(&shared->armed, true);
}

EXPORT long failing_disarm(void)
{
  atomic_store(&shared->armed, false);
  return atomic_load(&shared->calls);
}

EXPORT const char *failing_name(void)
{
  return shared->name[0] ? shared->name : NULL;
}

EXPORT long failing_blocks(void)
{
  return atomic_load(&blocks);
}

EXPORT long failing_mapped(void)
{
  return atomic_load(&mapped);
}

EXPORT long failing_descriptors(void)
{
  enum { MOST = 1024 };
  long n = 0;
  for (int fd = 0; fd < MOST; fd++)
    n += syscall(SYS_fcntl, fd, F_GETFD, 0) >= 0;
  return n;
}

EXPORT long failing_threads(void)
{
  DIR *folder = opendir("/proc/self/task");
  long n = 0;
  for (const struct dirent *entry; folder && (entry = readdir(folder));)
    n += entry->d_name[0] != '.';
  if (folder)
    closedir(folder);
  return n;
}

__attribute__((constructor)) static void failing_init(void)
{
  void *at =
      (void *)syscall(SYS_mmap, NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at != MAP_FAILED)
    shared = at;
}

/* -- Memory ---------------------------------------------------------------- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);

static void *failing_block(void *p)
{
  if (p)
    atomic_fetch_add(&blocks, 1);
  return p;
}

EXPORT void *malloc(size_t size)
{
  return failing("malloc", ENOMEM) ? NULL : failing_block(__libc_malloc(size));
}

EXPORT void *calloc(size_t n, size_t size)
{
  return failing("calloc", ENOMEM) ? NULL
                                   : failing_block(__libc_calloc(n, size));
}

EXPORT void *realloc(void *p, size_t size)
{
  if (failing("realloc", ENOMEM))
    return NULL;
  void *got = __libc_realloc(p, size);
  return p ? got : failing_block(got);
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
  return failing("aligned_alloc", ENOMEM)
             ? NULL
             : failing_block(__libc_memalign(align, size));
}

EXPORT int posix_memalign(void **out, size_t align, size_t size)
{
  if (failing("posix_memalign", ENOMEM))
    return ENOMEM;
  *out = failing_block(__libc_memalign(align, size));
  return *out ? 0 : ENOMEM;
}

static size_t freed_bytes(void *p)
{
  size_t size = malloc_usable_size(p);
  return size < FREED_BYTES ? size : FREED_BYTES;
}

static void freed_check(void *p)
{
  const unsigned char *bytes = p;
  size_t n = p ? freed_bytes(p) : 0, i = 0;
  while (i < n && bytes[i] == FREED_BYTE)
    i++;
  if (i < n)
    atomic_fetch_add(&spoiled, 1);
}

EXPORT void free(void *p)
{
  if (!p)
    return;
  atomic_fetch_sub(&blocks, 1);
  memset(p, FREED_BYTE, freed_bytes(p));
  unsigned long at = atomic_fetch_add(&freed_next, 1) % FREED_BLOCKS;
  void *oldest = atomic_exchange(&freed[at], p);
  freed_check(oldest);
  __libc_free(oldest);
}

/* While no other thread frees anything. */
EXPORT long failing_spoiled(void)
{
  for (int i = 0; i < FREED_BLOCKS; i++)
    freed_check(atomic_load(&freed[i]));
  return atomic_load(&spoiled);
}

/* NEXT(TYPE, NAME, PARAMETERS): the function of libc, as next. */
#define NEXT(type, name, ...)                                                  \
  static type (*next)(__VA_ARGS__);                                            \
  if (!next)                                                                   \
  *(void **)&next = dlsym(RTLD_NEXT, name)

EXPORT void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
  NEXT(void *, "mmap", void *, size_t, int, int, int, off_t);
  if (failing("mmap", ENOMEM))
    return MAP_FAILED;
  void *got = next(at, len, prot, flags, fd, off);
  if (got != MAP_FAILED)
    atomic_fetch_add(&mapped, (long)len);
  return got;
}

EXPORT int munmap(void *at, size_t len)
{
  NEXT(int, "munmap", void *, size_t);
  int result = next(at, len);
  if (!result)
    atomic_fetch_sub(&mapped, (long)len);
  return result;
}

EXPORT int mprotect(void *at, size_t len, int prot)
{
  NEXT(int, "mprotect", void *, size_t, int);
  return failing("mprotect", ENOMEM) ? -1 : next(at, len, prot);
}

/* -- Processes and threads ------------------------------------------------- */

EXPORT long syscall(long number, ...)
{
  NEXT(long, "syscall", long, ...);
  va_list list;
  long a[6];
  va_start(list, number);
  for (int i = 0; i < 6; i++)
    a[i] = va_arg(list, long);
  va_end(list);
  if ((number == SYS_clone && failing("clone", EAGAIN)) ||
      (number == SYS_close_range && failing("close_range", ENOSYS)) ||
      (number == SYS_renameat2 && failing("renameat2", EINVAL)))
    return -1;
  return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*start)(void *), void *arg)
{
  NEXT(int, "pthread_create", pthread_t *, const pthread_attr_t *,
       void *(*)(void *), void *);
  return failing("pthread_create", EAGAIN) ? EAGAIN
                                           : next(thread, attr, start, arg);
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
  enum { PAUSE_US = 20000 };
  NEXT(int, "pthread_mutex_unlock", pthread_mutex_t *);
  int result = next(mutex);
  if (shared && atomic_load(&shared->armed) &&
      atomic_load(&shared->how) & FAIL_SLOW_WAITER && failing_is("ljprof-heap"))
    usleep(PAUSE_US);
  return result;
}

/* -- Files ----------------------------------------------------------------- */

static mode_t failing_mode(int flags, va_list list)
{
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
}

EXPORT int open(const char *path, int flags, ...)
{
  NEXT(int, "open", const char *, int, ...);
  va_list list;
  va_start(list, flags);
  mode_t mode = failing_mode(flags, list);
  va_end(list);
  return failing("open", EMFILE) ? -1 : next(path, flags, mode);
}

EXPORT int openat(int dir, const char *path, int flags, ...)
{
  NEXT(int, "openat", int, const char *, int, ...);
  va_list list;
  va_start(list, flags);
  mode_t mode = failing_mode(flags, list);
  va_end(list);
  return failing("openat", EMFILE) ? -1 : next(dir, path, flags, mode);
}

EXPORT int memfd_create(const char *name, unsigned flags)
{
  NEXT(int, "memfd_create", const char *, unsigned);
  return failing("memfd_create", ENFILE) ? -1 : next(name, flags);
}

EXPORT int fcntl(int fd, int what, ...)
{
  NEXT(int, "fcntl", int, int, ...);
  va_list list;
  va_start(list, what);
  void *arg = va_arg(list, void *);
  va_end(list);
  if (what == F_DUPFD_CLOEXEC && failing("fcntl", EMFILE))
    return -1;
  return next(fd, what, arg);
}

EXPORT ssize_t write(int fd, const void *data, size_t len)
{
  NEXT(ssize_t, "write", int, const void *, size_t);
  return failing("write", ENOSPC) ? -1 : next(fd, data, len);
}

EXPORT ssize_t pread(int fd, void *data, size_t len, off_t at)
{
  NEXT(ssize_t, "pread", int, void *, size_t, off_t);
  return failing("pread", EIO) ? -1 : next(fd, data, len, at);
}

EXPORT int linkat(int from, const char *path, int to, const char *name,
                  int flags)
{
  NEXT(int, "linkat", int, const char *, int, const char *, int);
  return failing("linkat", ENOSPC) ? -1 : next(from, path, to, name, flags);
}

EXPORT int renameat(int from, const char *path, int to, const char *name)
{
  NEXT(int, "renameat", int, const char *, int, const char *);
  return failing("renameat", ENOSPC) ? -1 : next(from, path, to, name);
}

EXPORT char *getcwd(char *out, size_t room)
{
  NEXT(char *, "getcwd", char *, size_t);
  return failing("getcwd", ENOMEM) ? NULL : next(out, room);
}
