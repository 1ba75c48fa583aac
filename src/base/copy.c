/*
** See copy.h. Global because there is one process. The functions are written
** when a part is set up; the rest once by the first session, and in copies.
*/
#include "src/base/copy.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/assert.h"
#include "src/base/loader.h"

enum { COPY_PARTS = 4 };

static struct {
  void (*_Atomic copied[COPY_PARTS])(void);
  /* The kernel clears this word in every copy of this memory, but not for
  ** vfork(), whose child shares it. NULL: it cannot (before 4.14). */
  _Atomic uint32_t *_Atomic word;
  _Atomic pid_t pid; /* 0: no session was ever started. */
} copy;

void ljp_copy_on_notice(void (*copied)(void))
{
  for (int i = 0; i < COPY_PARTS; i++) {
    void (*before)(void) = NULL;
    if (atomic_compare_exchange_strong(&copy.copied[i], &before, copied) ||
        before == copied)
      return;
  }
  ljp_assert(false);
}

static void copy_make_word(void)
{
  size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
  void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED && madvise(page, bytes, MADV_WIPEONFORK) == 0)
    atomic_store(&copy.word, page);
  else if (page != MAP_FAILED)
    munmap(page, bytes);
}

void ljp_copy_watch(void)
{
  if (!atomic_load(&copy.pid))
    copy_make_word();
  if (copy.word)
    atomic_store(copy.word, 1);
  atomic_store(&copy.pid, getpid());
}

void ljp_copy_notice(void)
{
  pid_t pid = atomic_load(&copy.pid);
  if (!pid ||
      (copy.word ? atomic_exchange(copy.word, 1) != 0 : pid == getpid()))
    return;
  atomic_store(&copy.pid, getpid());
  ljp_loader_copied();
  for (int i = 0; i < COPY_PARTS && copy.copied[i]; i++)
    copy.copied[i]();
}
