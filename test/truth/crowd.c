/*
** A Lua module that makes a crowd of threads with known waits: each thread
** measures by the monotonic clock how long it is in each of its parts. A kind
** of thread has a name, and functions of its own, one for each part.
*/
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"
#include "test/truth/frame.h"

enum { PARTS = 4, MOST_THREADS = 96 };

/* One thread. The mutex guards the times. */
struct crowd_thread {
  const struct crowd_kind *kind;
  unsigned number; /* among its kind */
  _Atomic pid_t tid;
  pthread_mutex_t mutex;
  double seconds[PARTS], since;
  int part; /* that it is in since then */
};

struct crowd_kind {
  const char *name; /* of the threads */
  const char *parts[PARTS];
  void (*turn)(struct crowd_thread *);
};

static struct {
  struct crowd_thread threads[MOST_THREADS];
  unsigned count;
} crowd;

static double crowd_now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Under the mutex: the time of the present part goes to its sum. */
static void crowd_count(struct crowd_thread *t)
{
  double now = crowd_now();
  t->seconds[t->part] += now - t->since;
  t->since = now;
}

static void crowd_enter(struct crowd_thread *t, int part)
{
  pthread_mutex_lock(&t->mutex);
  crowd_count(t);
  t->part = part;
  pthread_mutex_unlock(&t->mutex);
}

/* -- What threads do ------------------------------------------------------- */

static void crowd_nap(long us)
{
  struct timespec left = {us / 1000000, us % 1000000 * 1000};
  while (nanosleep(&left, &left) && errno == EINTR)
    ;
}

static void crowd_spin(double us)
{
  for (double until = crowd_now() + us * 1e-6; crowd_now() < until;)
    for (volatile int i = 0; i < 200; i++)
      ;
}

/* Each part is a function that has frames and a symbol of its own. */
#define CROWD_PART(name)                                                       \
  TRUTH_APART void name(struct crowd_thread *t, int part, long us);            \
  TRUTH_APART void name(struct crowd_thread *t, int part, long us)
#define CROWD_NO_TAIL_CALL() __asm__ volatile("" ::: "memory")

#define CROWD_NAP(name)                                                        \
  CROWD_PART(name)                                                             \
  {                                                                            \
    crowd_enter(t, part);                                                      \
    crowd_nap(us);                                                             \
    CROWD_NO_TAIL_CALL();                                                      \
  }
#define CROWD_WORK(name)                                                       \
  CROWD_PART(name)                                                             \
  {                                                                            \
    crowd_enter(t, part);                                                      \
    crowd_spin((double)us);                                                    \
    CROWD_NO_TAIL_CALL();                                                      \
  }

/* Works and waits in turn, both shorter than the interval of a session. */
CROWD_WORK(turns_work)
CROWD_NAP(turns_nap)

static void turns_turn(struct crowd_thread *t)
{
  turns_work(t, 0, 200);
  turns_nap(t, 1, 300);
}

/* Waits of several lengths at several places. */
CROWD_WORK(mixed_work)
CROWD_NAP(mixed_short)
CROWD_NAP(mixed_long)
CROWD_NAP(mixed_longer)

static void mixed_turn(struct crowd_thread *t)
{
  mixed_work(t, 0, 150);
  mixed_short(t, 1, 100);
  mixed_work(t, 0, 30);
  mixed_long(t, 2, 700);
  mixed_longer(t, 3, 2500);
}

/* Waits for a lock that others hold while they wait. */
static pthread_mutex_t locks_mutex = PTHREAD_MUTEX_INITIALIZER;
CROWD_NAP(locks_hold)
CROWD_WORK(locks_work)
CROWD_PART(locks_lock)
{
  (void)us;
  crowd_enter(t, part);
  pthread_mutex_lock(&locks_mutex);
  CROWD_NO_TAIL_CALL();
}

static void locks_turn(struct crowd_thread *t)
{
  locks_lock(t, 0, 0);
  locks_hold(t, 1, 900 + 200 * t->number);
  pthread_mutex_unlock(&locks_mutex);
  locks_work(t, 2, 400);
}

/* Two threads that wait for each other by a condition variable. */
static struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  unsigned turn;
} pair = {.mutex = PTHREAD_MUTEX_INITIALIZER,
          .changed = PTHREAD_COND_INITIALIZER};
CROWD_WORK(pairs_work)
CROWD_PART(pairs_nap)
{
  crowd_enter(t, part);
  crowd_nap(us);
  pthread_mutex_lock(&pair.mutex);
  pair.turn++;
  pthread_cond_broadcast(&pair.changed);
  pthread_mutex_unlock(&pair.mutex);
  CROWD_NO_TAIL_CALL();
}
CROWD_PART(pairs_wait)
{
  (void)us;
  crowd_enter(t, part);
  pthread_mutex_lock(&pair.mutex);
  while (pair.turn % 2 != t->number % 2)
    pthread_cond_wait(&pair.changed, &pair.mutex);
  pthread_mutex_unlock(&pair.mutex);
  CROWD_NO_TAIL_CALL();
}

static void pairs_turn(struct crowd_thread *t)
{
  pairs_wait(t, 0, 0);
  pairs_work(t, 1, 150);
  pairs_nap(t, 2, t->number % 2 ? 300 : 1200);
}

/* Mostly idle. */
CROWD_NAP(idle_nap)
CROWD_WORK(idle_work)

static void idle_turn(struct crowd_thread *t)
{
  idle_nap(t, 0, 20000 + 3000 * t->number);
  idle_work(t, 1, 100);
}

static const struct crowd_kind crowd_kinds[] = {
    {"turns", {"turns_work", "turns_nap"}, turns_turn},
    {"mixed",
     {"mixed_work", "mixed_short", "mixed_long", "mixed_longer"},
     mixed_turn},
    {"locks", {"locks_lock", "locks_hold", "locks_work"}, locks_turn},
    {"pairs", {"pairs_wait", "pairs_work", "pairs_nap"}, pairs_turn},
    {"idle", {"idle_nap", "idle_work"}, idle_turn}};

static void *crowd_main(void *arg)
{
  struct crowd_thread *t = arg;
  t->tid = gettid();
  for (;;)
    t->kind->turn(t);
  return NULL;
}

/* -- The module ------------------------------------------------------------ */

static const struct crowd_kind *crowd_kind_of(lua_State *L)
{
  const char *name = luaL_checkstring(L, 1);
  for (unsigned i = 0; i < sizeof crowd_kinds / sizeof *crowd_kinds; i++)
    if (strcmp(crowd_kinds[i].name, name) == 0)
      return &crowd_kinds[i];
  luaL_error(L, "no kind %s", name);
  return NULL;
}

/* begin(kind, count): starts threads. */
static int crowd_begin(lua_State *L)
{
  const struct crowd_kind *kind = crowd_kind_of(L);
  lua_Integer count = luaL_checkinteger(L, 2);
  for (unsigned i = 0; i < (unsigned)count; i++) {
    struct crowd_thread *t = &crowd.threads[crowd.count];
    pthread_t thread;
    if (crowd.count++ == MOST_THREADS)
      return luaL_error(L, "too many threads");
    t->kind = kind;
    t->number = i;
    t->since = crowd_now();
    pthread_mutex_init(&t->mutex, NULL);
    int error = pthread_create(&thread, NULL, crowd_main, t);
    if (error)
      return luaL_error(L, "no thread: %s", strerror(error));
    pthread_setname_np(thread, kind->name);
    pthread_detach(thread);
  }
  return 0;
}

/* Seconds for which a thread was ready to run, but had no CPU. */
static double crowd_ready_of(pid_t tid)
{
  unsigned long long ran = 0, ready = 0;
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", (long)tid);
  FILE *f = fopen(path, "r");
  if (f && fscanf(f, "%llu %llu", &ran, &ready) != 2)
    ready = 0;
  if (f)
    fclose(f);
  return (double)ready * 1e-9;
}

/* seconds(kind): a table with the names of its parts, and the seconds that its
** threads have spent in them so far; "ready" are those without a CPU. */
static int crowd_seconds(lua_State *L)
{
  const struct crowd_kind *kind = crowd_kind_of(L);
  double sum[PARTS] = {0}, ready = 0;
  for (unsigned i = 0; i < crowd.count; i++) {
    struct crowd_thread *t = &crowd.threads[i];
    if (t->kind != kind)
      continue;
    pthread_mutex_lock(&t->mutex);
    crowd_count(t);
    for (int k = 0; k < PARTS; k++)
      sum[k] += t->seconds[k];
    pthread_mutex_unlock(&t->mutex);
    ready += crowd_ready_of(t->tid);
  }
  lua_newtable(L);
  for (int k = 0; k < PARTS && kind->parts[k]; k++) {
    lua_pushnumber(L, sum[k]);
    lua_setfield(L, -2, kind->parts[k]);
  }
  lua_pushnumber(L, ready);
  lua_setfield(L, -2, "ready");
  return 1;
}

/* ready(): seconds for which this thread was ready, but had no CPU. */
static int crowd_ready(lua_State *L)
{
  lua_pushnumber(L, crowd_ready_of(gettid()));
  return 1;
}

/* clock(): elapsed seconds. */
static int crowd_clock(lua_State *L)
{
  lua_pushnumber(L, crowd_now());
  return 1;
}

/* frame(name): a frame of that function, for truth_judge. */
static int crowd_frame(lua_State *L)
{
  return truth_push_range(L, luaL_checkstring(L, 1));
}

static const luaL_Reg functions[] = {
    {"begin", crowd_begin}, {"seconds", crowd_seconds}, {"ready", crowd_ready},
    {"clock", crowd_clock}, {"frame", crowd_frame},     {NULL, NULL}};

__attribute__((visibility("default"))) int luaopen_truth_crowd(lua_State *L);

int luaopen_truth_crowd(lua_State *L)
{
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  return 1;
}
