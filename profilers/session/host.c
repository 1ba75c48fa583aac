/*
** What every profiler takes from the host process; see host.h.
**
** One mutex guards the tables. A writer's round only tries it. fork() takes it:
** otherwise the child might get half-made tables, and the loader's lock held by
** a thread that the child does not have. Before fork() waits for the mutex, it
** asks the thread that holds the mutex to hurry. A copy by a raw clone() cannot
** wait. If the mutex was taken then, the copy makes new tables, and if it can
** never get the loader's lock, it records nothing.
*/
#include "profilers/session/host.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "src/base/assert.h"
#include "src/base/copy.h"
#include "src/base/loader.h"
#include "src/base/saferead.h"

static struct {
  pthread_mutex_t lock;
  struct ljp_unwind *tables;
} host = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __thread pid_t tid_before_fork;

/* -- Unwind tables --------------------------------------------------------- */
struct ljp_unwind *ljp_host_tables(void)
{
  return host.tables;
}

enum ljp_status ljp_host_poll_tables(void)
{
  enum { BUDGET_US = 20000 };
  if (pthread_mutex_trylock(&host.lock))
    return LJP_OK;
  ljp_assert(host.tables);
  enum ljp_status status = ljp_unwind_poll(host.tables, BUDGET_US);
  pthread_mutex_unlock(&host.lock);
  return status;
}

/* Makes the tables, or follows dlopen and dlclose. */
static enum ljp_status host_update_tables(void)
{
  pthread_mutex_lock(&host.lock);
  enum ljp_status status = host.tables ? ljp_unwind_refresh(host.tables)
                                       : ljp_unwind_new(&host.tables);
  pthread_mutex_unlock(&host.lock);
  return status;
}

void ljp_host_hurry(bool begin)
{
  if (host.tables)
    ljp_unwind_hurry(host.tables, begin);
}

/* -- fork() ---------------------------------------------------------------- */

/* The handlers may be registered more than once; then only the first call of them
** takes the lock. */
static __thread unsigned forks_nested;

static void host_before_fork(void)
{
  if (forks_nested++)
    return;
  tid_before_fork = gettid();
  struct ljp_unwind *tables = host.tables;
  if (tables)
    ljp_unwind_hurry(tables, true);
  pthread_mutex_lock(&host.lock);
  if (tables)
    ljp_unwind_hurry(tables, false);
  ljp_saferead_hold();
}

static void host_after_fork(void)
{
  if (--forks_nested)
    return;
  ljp_saferead_unhold();
  pthread_mutex_unlock(&host.lock);
}

static void host_copied(void)
{
  ljp_saferead_renew();
  if (pthread_mutex_trylock(&host.lock))
    host.tables = NULL; /* half-made: the memory is given up */
  pthread_mutex_init(&host.lock, NULL);
}

void ljp_host_forked(void)
{
  if (host.tables)
    ljp_unwind_after_fork(host.tables);
}

pid_t ljp_host_tid_before_fork(void)
{
  return tid_before_fork;
}

/* -- Preparing the host ---------------------------------------------------- */
void ljp_host_pin(void)
{
  Dl_info info;
  static bool pinned;
  if (pinned || !dladdr((const void *)(uintptr_t)&ljp_host_prepare, &info))
    return;
  /* NULL: the library is part of the program itself. */
  void *handle = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  if (!handle)
    dlerror();
  pinned = true;
}

enum ljp_status ljp_host_prepare(struct ljp_failure *why)
{
  static _Atomic bool hooked;
  enum ljp_status status = LJP_OK;
  if (ljp_loader_lost())
    return ljp_fail(why, LJP_ERR_RUN, EDEADLK,
                    "this process is a copy made by clone() while the loader "
                    "was busy, so it cannot be recorded; use fork()");
  ljp_copy_on_notice(host_copied);
  /* Two threads may come here at once, and register the handlers twice. */
  if (!atomic_load(&hooked) &&
      pthread_atfork(host_before_fork, host_after_fork, host_after_fork))
    return ljp_fail(why, LJP_ERR_MEM, ENOMEM, "out of memory");
  atomic_store(&hooked, true);
  ljp_host_pin();
  status = ljp_saferead_install();
  if (status)
    return ljp_fail(why, status, ljp_status_errno(status),
                    "handlers for faulting reads: %s", ljp_status_text(status));
  status = host_update_tables();
  if (status) {
    ljp_saferead_remove();
    return ljp_fail(why, status, ljp_status_errno(status), "unwind tables: %s",
                    ljp_status_text(status));
  }
  return LJP_OK;
}

void ljp_host_release(void)
{
  ljp_saferead_remove();
}
