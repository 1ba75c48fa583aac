/*
** A round of the writer finds the lock of the profiler taken, as when the thread
** that has it does not get a CPU. What the round was asked for must be done soon
** all the same, not in the next regular round, ten seconds later.
** Usage: missed_round OUTPUT
*/
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "test/support/check.h"
#include "test/support/host_vm.h"

static atomic_int tries; /* of our writer, to have a lock at once */
static atomic_bool refuse;

/* The library calls this function, as the program comes before libc. */
__attribute__((visibility("default"))) int
pthread_mutex_trylock(pthread_mutex_t *mutex)
{
  int (*next)(pthread_mutex_t * mutex);
  char name[16];
  *(void **)&next = dlsym(RTLD_NEXT, "pthread_mutex_trylock");
  if (!prctl(PR_GET_NAME, name) && strcmp(name, "ljprof-writer") == 0) {
    atomic_fetch_add(&tries, 1);
    if (atomic_exchange(&refuse, false))
      return EBUSY;
  }
  return next(mutex);
}

/* In a sandbox. The new VM makes the writer begin a round, which is to find the
** thread. */
static void *missed_vm(void *arg)
{
  struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {1, &allow};
  CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  CHECK(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
  atomic_store(&refuse, true);
  lua_State *L = new_vm();
  run(L, "jit.off() local function busy(n) local x = 0 "
         "for i = 1, n do x = x + i % 3 end end "
         "repeat busy(10000) until misc.sysprof.report().samples > 10 "
         "assert(os.clock() < 4, os.clock())");
  CHECK(!atomic_load(&refuse));
  lua_close(L);
  return arg;
}

int main(int argc, char **argv)
{
  pthread_t thread;
  lua_State *L = new_vm();
  CHECK(argc == 2);
  start_session(L, argv[1], "interval=1, flush=10000");
  while (atomic_load(&tries) < 10) /* then looks are rare */
    usleep(1000);
  CHECK(!pthread_create(&thread, NULL, missed_vm, NULL));
  pthread_join(thread, NULL);
  run(L, "assert(misc.sysprof.stop())");
  lua_close(L);
  return 0;
}
