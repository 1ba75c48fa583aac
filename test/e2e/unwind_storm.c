/*
** Maps change while handlers use them. Threads are interrupted at random and
** walk their stacks, while libraries come and go and the writer follows.
** Nothing may crash, no walk may end in nonsense, and no slot may keep a user.
**
** TSan delivers signals late, with an old context and all signals blocked, so
** under TSan the threads walk their own stacks instead.
**
** Usage: unwind_storm [SECONDS]
*/
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "profilers/unwind/unwind.h"
#include "profilers/unwind/map.h"
#include "src/base/clock.h"
#include "src/base/saferead.h"

enum { THREADS = 3, DEPTH = 128, RESULTS = 16 };
#if defined(__SANITIZE_THREAD__)
#define OWN_WALKS 1
#else
#define OWN_WALKS 0
#endif
#define NOINLINE __attribute__((noinline, noclone))

static struct ljp_unwind *unwinder;
static _Atomic uint64_t ends[RESULTS], missed, missing_root;
static _Atomic bool stopped;
static atomic_bool shooter_stopped;
static atomic_int running; /* threads in thread_main */

static NOINLINE void *thread_main(void *unused);

static void on_signal(int number, siginfo_t *info, void *context)
{
  const ucontext_t *uc = context;
  struct ljp_unwind_room room;
  struct ljp_regs regs;
  enum ljp_unwind_result result = LJP_UNWIND_STEPPED;
  bool root = false;
  (void)number;
  (void)info;
  const struct ljp_unwind_map *map = ljp_unwind_acquire(unwinder);
  if (!map || !ljp_saferead_enter(&uc->uc_sigmask)) {
    atomic_fetch_add(&missed, 1);
    if (map)
      ljp_unwind_release(unwinder, map);
    return;
  }
  ljp_regs_from_context(&regs, context, &room);
  for (int i = 0; i < DEPTH && !result; i++) {
    root |= regs.r[LJP_RIP] - (uintptr_t)thread_main < 1024;
    result = ljp_unwind_step(map, &regs);
  }
  atomic_fetch_add(&ends[result], 1);
  if (result == LJP_UNWIND_END && !root)
    atomic_fetch_add(&missing_root, 1);
  ljp_unwind_release(unwinder, map);
}

static int compare(const void *a, const void *b)
{
  return *(const int *)a - *(const int *)b;
}

static NOINLINE int work(int depth)
{
  int numbers[61];
  char text[64];
  for (int i = 0; i < 61; i++)
    numbers[i] = i * 37 % 61;
  qsort(numbers, 61, sizeof *numbers, compare);
  snprintf(text, sizeof text, "%d %s %x", depth, "text", numbers[3]);
  free(malloc((size_t)depth * 10));
  return depth ? work(depth - 1) + text[0] : 0;
}

static void *thread_main(void *unused)
{
  volatile int sum = 0;
  atomic_fetch_add(&running, 1);
  while (!atomic_load(&stopped)) {
    sum += work(20);
    if (OWN_WALKS) {
      ucontext_t here;
      getcontext(&here);
      on_signal(0, NULL, &here);
    }
  }
  return unused;
}

static void pause_us(long us)
{
  struct timespec time = {0, us * 1000};
  nanosleep(&time, NULL);
}

static void *shooter(void *threads)
{
  pthread_t *targets = threads;
  for (unsigned i = 0; !atomic_load(&shooter_stopped); i++) {
    if (!OWN_WALKS)
      pthread_kill(targets[i % THREADS], SIGUSR1);
    pause_us(20);
  }
  return NULL;
}

int main(int argc, char **argv)
{
  static const char *const libraries[] = {"libcrypt.so.1", "libz.so.1",
                                          "libm.so.6", "libutil.so.1"};
  struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART};
  pthread_t threads[THREADS], shoot;
  int seconds = argc > 1 ? atoi(argv[1]) : 3;
  action.sa_sigaction = on_signal;
  if (ljp_saferead_install() || ljp_unwind_new(&unwinder) ||
      sigaction(SIGUSR1, &action, NULL))
    return 1;
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, thread_main, NULL);
  while (atomic_load(&running) < THREADS)
    pause_us(1000);
  pthread_create(&shoot, NULL, shooter, threads);
  uint64_t until = ljp_clock_ns() + (uint64_t)seconds * 1000000000u;
  for (unsigned i = 0; ljp_clock_ns() < until; i++) {
    void *library = dlopen(libraries[i % 4], RTLD_NOW);
    ljp_unwind_poll(unwinder, 200);
    if (library)
      dlclose(library);
    ljp_unwind_poll(unwinder, 200);
    pause_us(100);
  }
  /* Stop the signals first: a thread that is interrupted outside thread_main
  ** would count as a walk without its root. */
  atomic_store(&shooter_stopped, true);
  pthread_join(shoot, NULL);
  pause_us(100000);
  atomic_store(&stopped, true);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  struct ljp_unwind_stats stats;
  ljp_unwind_poll(unwinder, 0);
  ljp_unwind_stats(unwinder, &stats);
  uint64_t all = 0, users = 0;
  for (int i = 0; i < RESULTS; i++) {
    all += atomic_load(&ends[i]);
    if (atomic_load(&ends[i]))
      printf("%8lu %s\n", (unsigned long)atomic_load(&ends[i]),
             ljp_unwind_result_text((enum ljp_unwind_result)i));
  }
  for (int i = 0; i < LJP_UNWIND_SLOTS; i++)
    users += atomic_load(&unwinder->slots[i].users);
  printf("%lu walks, %lu missed, %lu without their root, %lu maps, "
         "%lu put off, %lu still counted in\n",
         (unsigned long)all, (unsigned long)atomic_load(&missed),
         (unsigned long)atomic_load(&missing_root), (unsigned long)stats.maps,
         (unsigned long)stats.retired_busy, (unsigned long)users);
  bool good = all > 1000u * (unsigned)seconds / 4 && stats.maps > 10 &&
              users == 0 && atomic_load(&missing_root) == 0 &&
              atomic_load(&ends[LJP_UNWIND_END]) * 1000 >= all * 995;
  ljp_unwind_free(unwinder);
  ljp_saferead_remove();
  return !good;
}
