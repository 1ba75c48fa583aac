/*
** Known waits, a Lua module: each function waits in one way, for a number of
** milliseconds, and fails if the wait ended early. Two plain threads run beside
** the program: the waker ends the waits that another thread must end, and the
** worker waits and works by itself.
*/
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"
#include "test/truth/frame.h"

TRUTH_APART void worker_sleep(int ms);
TRUTH_APART void worker_poll(int ms);
TRUTH_APART void worker_spin(int ms);
TRUTH_APART void *worker_main(void *arg);
TRUTH_APART void *waker_main(void *arg);

static double waits_now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void waits_pause(int ms)
{
  struct timespec left = {ms / 1000, ms % 1000 * 1000000L};
  while (nanosleep(&left, &left) && errno == EINTR)
    ;
}

/* -- The waker ------------------------------------------------------------- */

enum request { REQUEST_NONE, REQUEST_WRITE, REQUEST_WAKE, REQUEST_HOLD };

static struct {
  pthread_mutex_t mutex, held;
  pthread_cond_t changed;
  enum request request;
  int ms;
  bool holds;
  int pipe[2];
  _Atomic uint32_t word;
} waker = {.mutex = PTHREAD_MUTEX_INITIALIZER,
           .held = PTHREAD_MUTEX_INITIALIZER,
           .changed = PTHREAD_COND_INITIALIZER};

static void waker_serve(enum request request, int ms)
{
  if (request == REQUEST_HOLD) {
    pthread_mutex_lock(&waker.held);
    pthread_mutex_lock(&waker.mutex);
    waker.holds = true;
    pthread_cond_signal(&waker.changed);
    pthread_mutex_unlock(&waker.mutex);
  }
  waits_pause(ms);
  if (request == REQUEST_HOLD) {
    pthread_mutex_unlock(&waker.held);
  } else if (request == REQUEST_WRITE) {
    if (write(waker.pipe[1], "x", 1) != 1)
      perror("write");
  } else {
    atomic_store(&waker.word, 1);
    syscall(SYS_futex, &waker.word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  }
}

TRUTH_APART void *waker_main(void *arg)
{
  (void)arg;
  pthread_mutex_lock(&waker.mutex);
  for (;;) {
    while (!waker.request)
      pthread_cond_wait(&waker.changed, &waker.mutex);
    enum request request = waker.request;
    int ms = waker.ms;
    waker.request = REQUEST_NONE;
    pthread_mutex_unlock(&waker.mutex);
    waker_serve(request, ms);
    pthread_mutex_lock(&waker.mutex);
  }
  return NULL;
}

static void waker_ask(enum request request, int ms)
{
  pthread_mutex_lock(&waker.mutex);
  waker.request = request;
  waker.ms = ms;
  waker.holds = false;
  pthread_cond_signal(&waker.changed);
  while (request == REQUEST_HOLD && !waker.holds)
    pthread_cond_wait(&waker.changed, &waker.mutex);
  pthread_mutex_unlock(&waker.mutex);
}

/* -- Waits of Lua's thread ------------------------------------------------- */

/* Returns 0 to Lua, or fails because a wait of so long ended early. */
static int waits_over(lua_State *L, const char *what, int ret, double began)
{
  int error = errno;
  double ms = (double)luaL_checkinteger(L, 1), took = waits_now() - began;
  if (ret)
    return luaL_error(L, "%s: %s after %f ms of %f", what, strerror(error),
                      took * 1e3, ms);
  if (took * 1e3 < ms)
    return luaL_error(L, "%s: ended after %f ms of %f", what, took * 1e3, ms);
  return 0;
}

static int waits_sleep(lua_State *L)
{
  double began = waits_now();
  int ms = (int)luaL_checkinteger(L, 1);
  struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
  return waits_over(L, "nanosleep", nanosleep(&t, NULL), began);
}

static int waits_poll(lua_State *L)
{
  double began = waits_now();
  return waits_over(L, "poll", poll(NULL, 0, (int)luaL_checkinteger(L, 1)),
                    began);
}

static int waits_epoll(lua_State *L)
{
  static int fd = -1;
  struct epoll_event event;
  if (fd < 0)
    fd = epoll_create1(EPOLL_CLOEXEC);
  double began = waits_now();
  return waits_over(L, "epoll_wait",
                    epoll_wait(fd, &event, 1, (int)luaL_checkinteger(L, 1)),
                    began);
}

static int waits_read(lua_State *L)
{
  char c;
  double began = waits_now();
  waker_ask(REQUEST_WRITE, (int)luaL_checkinteger(L, 1));
  return waits_over(L, "read", read(waker.pipe[0], &c, 1) != 1, began);
}

static int waits_futex(lua_State *L)
{
  double began = waits_now();
  atomic_store(&waker.word, 0);
  waker_ask(REQUEST_WAKE, (int)luaL_checkinteger(L, 1));
  long ret = 0;
  while (!ret && !atomic_load(&waker.word)) {
    ret = syscall(SYS_futex, &waker.word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    if (ret && errno == EAGAIN)
      ret = 0;
  }
  return waits_over(L, "futex", ret != 0, began);
}

static int waits_lock(lua_State *L)
{
  double began = waits_now();
  waker_ask(REQUEST_HOLD, (int)luaL_checkinteger(L, 1));
  pthread_mutex_lock(&waker.held);
  pthread_mutex_unlock(&waker.held);
  return waits_over(L, "pthread_mutex_lock", 0, began);
}

static uint32_t waits_work(int ms)
{
  uint32_t x = 2463534242u;
  for (double until = waits_now() + ms * 1e-3; waits_now() < until;)
    for (int i = 0; i < 1000; i++) {
      x ^= x << 13;
      x ^= x >> 17;
      x ^= x << 5;
    }
  return x;
}

static int waits_spin(lua_State *L)
{
  lua_pushinteger(L, (lua_Integer)waits_work((int)luaL_checkinteger(L, 1)));
  return 1;
}

/* -- The worker ------------------------------------------------------------ */

enum { WORKER_PARTS = 3 };

static struct {
  pthread_mutex_t mutex;
  double seconds[WORKER_PARTS], since;
  int part; /* that it does since then */
} worker = {.mutex = PTHREAD_MUTEX_INITIALIZER};

TRUTH_APART void worker_sleep(int ms)
{
  waits_pause(ms);
  __asm__ volatile("" ::: "memory"); /* no tail call */
}

TRUTH_APART void worker_poll(int ms)
{
  poll(NULL, 0, ms);
  __asm__ volatile("" ::: "memory");
}

TRUTH_APART void worker_spin(int ms)
{
  waits_work(ms);
  __asm__ volatile("" ::: "memory");
}

/* Under the mutex: the time of the present part goes to its sum. */
static void worker_count(void)
{
  double now = waits_now();
  worker.seconds[worker.part] += now - worker.since;
  worker.since = now;
}

static void worker_begin(int part)
{
  pthread_mutex_lock(&worker.mutex);
  worker_count();
  worker.part = part;
  pthread_mutex_unlock(&worker.mutex);
}

TRUTH_APART void *worker_main(void *arg)
{
  for (int i = 0;; i++) {
    worker_begin(0);
    worker_sleep(17 + i % 5);
    worker_begin(1);
    worker_poll(23 + i % 3);
    worker_begin(2);
    worker_spin(12 + i % 2);
  }
  return arg;
}

/* worker(): the seconds of its parts so far. */
static int waits_worker(lua_State *L)
{
  pthread_mutex_lock(&worker.mutex);
  worker_count();
  for (int i = 0; i < WORKER_PARTS; i++)
    lua_pushnumber(L, worker.seconds[i]);
  pthread_mutex_unlock(&worker.mutex);
  return WORKER_PARTS;
}

/* -- The module ------------------------------------------------------------ */

static int waits_threads(lua_State *L)
{
  pthread_t thread;
  worker.since = waits_now();
  if (pipe(waker.pipe) || pthread_create(&thread, NULL, waker_main, NULL) ||
      pthread_create(&thread, NULL, worker_main, NULL))
    return luaL_error(L, "no threads: %s", strerror(errno));
  return 0;
}

/* clock(): elapsed seconds. */
static int waits_clock(lua_State *L)
{
  lua_pushnumber(L, waits_now());
  return 1;
}

static const luaL_Reg functions[] = {{"sleep", waits_sleep},
                                     {"poll", waits_poll},
                                     {"epoll", waits_epoll},
                                     {"read", waits_read},
                                     {"futex", waits_futex},
                                     {"lock", waits_lock},
                                     {"spin", waits_spin},
                                     {"worker", waits_worker},
                                     {"threads", waits_threads},
                                     {"clock", waits_clock},
                                     {NULL, NULL}};

/* frame(name): a frame of that function, for truth_judge. Of a function of the
** two threads any instruction counts. */
static int waits_frame(lua_State *L)
{
  const char *name = luaL_checkstring(L, 1);
  for (int i = 0; functions[i].name; i++)
    if (strcmp(functions[i].name, name) == 0)
      return truth_push_function(L, functions, name);
  return truth_push_range(L, name);
}

__attribute__((visibility("default"))) int luaopen_truth_waits(lua_State *L);

int luaopen_truth_waits(lua_State *L)
{
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  lua_pushcfunction(L, waits_frame);
  lua_setfield(L, -2, "frame");
  return 1;
}
