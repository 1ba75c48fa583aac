/*
** A program whose memory a client records. Usage: join_memory_host MODE, until
** SIGTERM. Each VM has a checksum of what it does. The program prints what went
** wrong: a VM whose sum is wrong, an allocator that got the `ud` of another one,
** a block whose content has changed; and the VMs whose allocator is not theirs
** at the end, when each has allocated once more.
**   one      one VM, LuaJIT's own allocator
**   threads  the same on each of four threads
**   host     four VMs on two threads, the host's allocator, the same ud
**   stopped  one VM, whose collector is stopped; a compiled loop that allocates
**   quiet    one VM that does not allocate
**   swaps    sets one of two allocators of its own, with its own ud, all the time
**   keeps    other threads call what lua_getallocf() has returned, all the time
**   nested   makes VMs on other threads with what lua_getallocf() has returned
**   close    makes and closes VMs on two threads, all the time
**   forks    a VM forks all the time; the children use the VM
*/
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"
#include "test/support/host_vm.h"

static _Atomic bool host_end;
static _Atomic int host_wrong, host_left;

static void host_stop(int number)
{
  (void)number;
  atomic_store(&host_end, true);
}

static void host_check(bool good, const char *what)
{
  if (!good && atomic_fetch_add(&host_wrong, 1) < 5)
    fprintf(stderr, "wrong: %s\n", what);
}

static void host_pause(long us)
{
  nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

/* -- Allocators ------------------------------------------------------------ */

/* An allocator knows its own ud. */
static char host_ud[2];

static void *host_plain(void *ptr, size_t nsize)
{
  if (nsize)
    return realloc(ptr, nsize);
  free(ptr);
  return NULL;
}

static void *host_first(void *ud, void *ptr, size_t osize, size_t nsize)
{
  (void)osize;
  host_check(ud == &host_ud[0], "the first allocator has another's ud");
  return host_plain(ptr, nsize);
}

static void *host_second(void *ud, void *ptr, size_t osize, size_t nsize)
{
  (void)osize;
  host_check(ud == &host_ud[1], "the second allocator has another's ud");
  return host_plain(ptr, nsize);
}

struct allocator {
  lua_Alloc alloc;
  void *ud;
};

static struct allocator allocator_of(lua_State *L)
{
  struct allocator a;
  a.alloc = lua_getallocf(L, &a.ud);
  return a;
}

/* After one more allocation the VM has the allocator that it was made with. */
static void host_compare(lua_State *L, const struct allocator *own)
{
  lua_newtable(L);
  lua_pop(L, 1);
  struct allocator now = allocator_of(L);
  if (now.alloc != own->alloc || now.ud != own->ud)
    atomic_fetch_add(&host_left, 1);
}

/* -- VMs ------------------------------------------------------------------- */

/* Tables, strings, a table that grows, a userdata. */
static const char host_work[] =
    "local kept = {} "
    "function make(i) return {tostring(i), i} end "
    "function round() "
    "  local sum = 0 "
    "  for i = 1, 500 do kept[i] = make(i) sum = sum + #kept[i][1] end "
    "  local list = {} "
    "  for i = 1, 300 do list[i] = i sum = sum + #list end "
    "  newproxy() "
    "  return sum "
    "end";
#define HOST_SUM (9 * 1 + 90 * 2 + 401 * 3 + 300 * 301 / 2)

static lua_State *host_vm(const struct allocator *a)
{
  lua_State *L = a ? lua_newstate(a->alloc, a->ud) : luaL_newstate();
  luaL_openlibs(L);
  run(L, host_work);
  return L;
}

static void host_round(lua_State *L)
{
  lua_getglobal(L, "round");
  lua_call(L, 0, 1);
  host_check(lua_tonumber(L, -1) == HOST_SUM, "the sum");
  lua_pop(L, 1);
}

static void *host_run(void *allocator)
{
  lua_State *L = host_vm(allocator);
  const struct allocator own = allocator_of(L);
  while (!atomic_load(&host_end)) {
    host_round(L);
    host_pause(2000);
  }
  host_compare(L, &own);
  lua_close(L);
  return NULL;
}

enum { THREADS = 4 };
static void host_threads(void *(*work)(void *), void *argument, int count)
{
  pthread_t threads[THREADS];
  for (int i = 0; i < count; i++)
    if (pthread_create(&threads[i], NULL, work, argument))
      exit(1);
  for (int i = 0; i < count; i++)
    pthread_join(threads[i], NULL);
}

/* Two VMs in turn on one thread. */
static void *host_two(void *unused)
{
  const struct allocator own = {host_first, &host_ud[0]};
  lua_State *L[2] = {host_vm(&own), host_vm(&own)};
  (void)unused;
  while (!atomic_load(&host_end)) {
    host_round(L[0]);
    host_round(L[1]);
    host_pause(2000);
  }
  for (int i = 0; i < 2; i++) {
    host_compare(L[i], &own);
    lua_close(L[i]);
  }
  return NULL;
}

static void host_stopped(void)
{
  lua_State *L = host_vm(NULL);
  const struct allocator own = allocator_of(L);
  run(L,
      "collectgarbage() collectgarbage('stop') "
      "function loop() local t for i = 1, 20 do t = {i} end return t[1] end");
  while (!atomic_load(&host_end)) {
    lua_getglobal(L, "loop");
    lua_call(L, 0, 1);
    host_check(lua_tonumber(L, -1) == 20, "the loop");
    lua_pop(L, 1);
    host_pause(500);
  }
  host_compare(L, &own);
  lua_close(L);
}

static void host_quiet(void)
{
  lua_State *L = host_vm(NULL);
  const struct allocator own = allocator_of(L);
  while (!atomic_load(&host_end))
    host_pause(1000);
  host_compare(L, &own);
  lua_close(L);
}

/* -- What a program may do with its allocators ----------------------------- */
static void host_swaps(void)
{
  const struct allocator a[2] = {{host_first, &host_ud[0]},
                                 {host_second, &host_ud[1]}};
  lua_State *L = host_vm(a);
  for (unsigned i = 0; !atomic_load(&host_end); i++) {
    lua_setallocf(L, a[i % 2].alloc, a[i % 2].ud);
    for (int n = 0; n < 7; n++) {
      lua_newtable(L);
      lua_pop(L, 1);
    }
    if (i % 1024 == 0)
      host_round(L);
  }
  lua_setallocf(L, a[0].alloc, a[0].ud);
  host_compare(L, a);
  lua_close(L);
}

static struct allocator host_kept[64]; /* all that were ever seen */
static _Atomic uint32_t host_kept_count;

static void host_keep(lua_State *L)
{
  const struct allocator a = allocator_of(L);
  uint32_t count = atomic_load(&host_kept_count);
  for (uint32_t i = 0; i < count; i++)
    if (host_kept[i].alloc == a.alloc && host_kept[i].ud == a.ud)
      return;
  if (count == 64)
    return;
  host_kept[count] = a;
  atomic_store(&host_kept_count, count + 1);
}

/* A recorder of a session is for the VM's own thread; so other threads call only
** functions that have come with the program's own ud. */
static void *host_caller(void *unused)
{
  enum { BLOCKS = 16, BYTES = 1009 };
  char *block[BLOCKS] = {NULL};
  (void)unused;
  for (unsigned i = 0; !atomic_load(&host_end); i++) {
    uint32_t count = atomic_load(&host_kept_count);
    struct allocator a = host_kept[i % (count ? count : 1)];
    char **at = &block[i * 7 % BLOCKS];
    if (!count || a.ud != &host_ud[0])
      continue;
    host_check(!*at || (**at == 7 && (*at)[BYTES - 1] == 7), "a block");
    *at = a.alloc(a.ud, *at, *at ? BYTES : 0, *at && i % 3 ? 0 : BYTES);
    if (*at)
      memset(*at, 7, BYTES);
  }
  for (int i = 0; i < BLOCKS; i++)
    free(block[i]);
  return NULL;
}

static void *host_keeper(void *unused)
{
  const struct allocator own = {host_first, &host_ud[0]};
  lua_State *L = host_vm(&own);
  (void)unused;
  while (!atomic_load(&host_end)) {
    for (int i = 0; i < 50; i++) {
      host_keep(L);
      host_round(L);
    }
    host_pause(20000); /* a client may join meanwhile */
  }
  host_compare(L, &own);
  lua_close(L);
  return NULL;
}

static void *host_nester(void *unused)
{
  (void)unused;
  while (!atomic_load(&host_end)) {
    uint32_t count = atomic_load(&host_kept_count);
    for (uint32_t i = 0; i < count; i++) {
      if (host_kept[i].ud != &host_ud[0])
        continue;
      lua_State *L = host_vm(&host_kept[i]);
      for (int n = 0; n < 5; n++)
        host_round(L);
      lua_close(L);
    }
  }
  return NULL;
}

static void host_with_keeper(void *(*other)(void *))
{
  pthread_t keeper;
  if (pthread_create(&keeper, NULL, host_keeper, NULL))
    exit(1);
  host_threads(other, NULL, 2);
  pthread_join(keeper, NULL);
  printf("kept %u\n", atomic_load(&host_kept_count));
}

static void *host_closer(void *unused)
{
  const struct allocator own = {host_first, &host_ud[0]};
  (void)unused;
  for (unsigned i = 0; !atomic_load(&host_end); i++) {
    lua_State *L = host_vm(i % 2 ? &own : NULL);
    host_round(L);
    lua_close(L);
  }
  return NULL;
}

/* A child that is made between the end of a session and the VM's next allocation
** keeps the recorder, which passes calls on. That must be rare. */
static void host_forks(void)
{
  enum { RARE = 20 };
  lua_State *L = host_vm(NULL);
  const struct allocator own = allocator_of(L);
  int forks = 0, keep = 0;
  while (!atomic_load(&host_end)) {
    int status = 0;
    host_round(L);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      atomic_store(&host_wrong, 0);
      host_round(L);
      lua_gc(L, LUA_GCCOLLECT, 0);
      host_compare(L, &own);
      lua_close(L);
      _exit(atomic_load(&host_wrong) ? 2 : atomic_load(&host_left));
    }
    host_check(child > 0 && waitpid(child, &status, 0) == child, "no child");
    host_check(WIFEXITED(status) && WEXITSTATUS(status) < 2, "a child");
    keep += status != 0;
    forks++;
    host_pause(2000);
  }
  printf("%d of %d children have a recorder\n", keep, forks);
  host_check(keep * RARE <= forks, "children keep recorders");
  host_compare(L, &own);
  lua_close(L);
}

int main(int argc, char **argv)
{
  static const struct allocator first = {host_first, &host_ud[0]};
  struct sigaction stop = {.sa_handler = host_stop, .sa_flags = SA_RESTART};
  const char *mode = argc > 1 ? argv[1] : "";
  sigaction(SIGTERM, &stop, NULL);
  printf("ready\n");
  fflush(stdout);
  if (strcmp(mode, "one") == 0)
    host_threads(host_run, NULL, 1);
  else if (strcmp(mode, "threads") == 0)
    host_threads(host_run, NULL, THREADS);
  else if (strcmp(mode, "host") == 0)
    host_threads(host_two, (void *)(uintptr_t)&first, 2);
  else if (strcmp(mode, "stopped") == 0)
    host_stopped();
  else if (strcmp(mode, "quiet") == 0)
    host_quiet();
  else if (strcmp(mode, "swaps") == 0)
    host_swaps();
  else if (strcmp(mode, "keeps") == 0)
    host_with_keeper(host_caller);
  else if (strcmp(mode, "nested") == 0)
    host_with_keeper(host_nester);
  else if (strcmp(mode, "close") == 0)
    host_threads(host_closer, NULL, 2);
  else if (strcmp(mode, "forks") == 0)
    host_forks();
  else
    return 2;
  printf("%s: wrong %d left %d\n", mode, atomic_load(&host_wrong),
         atomic_load(&host_left));
  return 0;
}
