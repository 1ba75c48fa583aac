/*
** POSIX timers that send their signals to one thread. See timer.h.
**
** A thread has two timers on the monotonic clock, each with twice the period,
** which expire in turn. A third one, `park`, on the thread's CPU clock,
** replaces them while the thread waits. Why two: the kernel restarts a
** periodic timer when its signal is delivered. With one timer, that timer is
** the next to expire, so the hardware's timer is set a second time in each
** period, which costs 4.6 us on a virtual machine. With two, the other timer
** expires first. We keep the kernel's own timer numbers, which signals carry
** and libc hides.
*/
#include "profilers/cpu/timer.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "profilers/cpu/proc_task.h"
#include "profilers/cpu/timer_wish.h"
#include "src/base/assert.h"
#include "src/base/clock.h"

static int posix_available(void)
{
  return 0;
}

int ljp_timer_create(struct ljp_sampler *s, clockid_t clock, int signal,
                     int *out)
{
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal;
  event.sigev_value.sival_ptr = (void *)&ljp_samplers[s->index];
#ifdef sigev_notify_thread_id
  event.sigev_notify_thread_id = s->tid;
#else
  event._sigev_un._tid = s->tid;
#endif
  return syscall(SYS_timer_create, clock, &event, out) ? errno : 0;
}

void ljp_timer_delete(int *timer)
{
  if (*timer >= 0)
    syscall(SYS_timer_delete, *timer);
  *timer = -1;
}

int ljp_timer_posix_set(struct ljp_sampler *s, uint64_t period_ns)
{
  int error = ljp_timer_set(s->timer[0], 0, period_ns, 2 * period_ns);
  return error ? error
               : ljp_timer_set(s->timer[1], 0, 2 * period_ns, 2 * period_ns);
}

/* The time until the next signal; 0: both timers are stopped. */
static uint64_t posix_left_ns(const struct ljp_sampler *s)
{
  uint64_t one = ljp_timer_left_ns(s->timer[0]);
  uint64_t other = ljp_timer_left_ns(s->timer[1]);
  return !one || (other && other < one) ? other : one;
}

/* Can the thread be asked to change its timers by itself? If not, or if no signal
** of theirs is near, they are changed without it. */
static bool posix_is_to_ask(const struct ljp_sampler *s)
{
  enum { FAR_NS = 5000000 };
  uint64_t left = s->tid == gettid() ? 0 : posix_left_ns(s);
  if (!left || ljp_task_is_filtered()) /* the file may not be opened then */
    return false;
  enum ljp_task_answer answer = ljp_task_answer(s->tid, s->signal);
  return answer == LJP_TASK_ASKED || (answer == LJP_TASK_SOON && left < FAR_NS);
}

static void posix_end(struct ljp_sampler *s)
{
  if (s->timer[0] >= 0 && s->timer[1] >= 0 && posix_is_to_ask(s))
    ljp_timer_wish(s, LJP_WISH_DELETE);
}

/* Waits until the thread has deleted its timers. False: it has not been asked, or
** does not run: it may be stopped, or the machine is very busy. */
static bool posix_await_end(struct ljp_sampler *s)
{
  enum { FIRST_NS = 50000, LONGEST_NS = 5000000, MOST_NS = 300000000 };
  struct timespec pause = {0, FIRST_NS};
  uint32_t wish;
  for (long all = 0; (wish = atomic_load(&s->wish)) == LJP_WISH_BUSY ||
                     (wish == LJP_WISH_DELETE && all < MOST_NS);
       all += pause.tv_nsec) {
    nanosleep(&pause, NULL);
    if (pause.tv_nsec < LONGEST_NS)
      pause.tv_nsec *= 2;
  }
  if (wish == LJP_WISH_DELETE && !ljp_timer_unwish(s, wish))
    return posix_await_end(s); /* just now the thread has begun with it */
  return wish == LJP_WISH_DONE;
}

static void posix_disarm(struct ljp_sampler *s)
{
  ljp_timer_unwish(s, LJP_WISH_PARK);
  if (atomic_load(&s->wish) == LJP_WISH_NONE)
    posix_end(s);
  if (posix_await_end(s))
    s->timer[0] = s->timer[1] = -1;
  atomic_store(&s->wish, LJP_WISH_NONE);
  ljp_timer_delete(&s->timer[0]);
  ljp_timer_delete(&s->timer[1]);
  ljp_timer_delete(&s->park);
}

bool ljp_timer_posix_park(struct ljp_sampler *s)
{
  enum { TRIES = 16 };
  bool asked = atomic_load(&s->wish) == LJP_WISH_PARK;
  if (asked ? s->unparked++ < TRIES : posix_is_to_ask(s)) {
    if (!asked)
      s->unparked = 0;
    ljp_timer_wish(s, LJP_WISH_PARK);
    return false;
  }
  return !asked || ljp_timer_unwish(s, LJP_WISH_PARK);
}

static int posix_arm(struct ljp_sampler *s, int signal)
{
  ljp_assert(s->timer[0] < 0 && s->timer[1] < 0 && s->park < 0);
  s->signal = signal;
  atomic_store(&s->wish, LJP_WISH_NONE);
  int error = ljp_timer_create(s, CLOCK_MONOTONIC, signal, &s->timer[0]);
  if (!error)
    error = ljp_timer_create(s, CLOCK_MONOTONIC, signal, &s->timer[1]);
  if (!error)
    error = ljp_timer_create(s, ljp_task_cpu_clock(s->tid), signal, &s->park);
  if (!error)
    error = ljp_timer_posix_set(s, atomic_load(&s->period_ns));
  if (error)
    posix_disarm(s);
  return error;
}

/* The next signal comes when it is due, later ones by the new period. If
** this thread loses its CPU meanwhile, both timers may expire at once, which
** the handler counts as one sample; so the next signal must not be near. */
static bool posix_renew(struct ljp_sampler *s, uint64_t period_ns, bool at_once)
{
  uint64_t old = atomic_load(&s->period_ns), now = ljp_clock_ns();
  uint64_t left[2] = {ljp_timer_left_ns(s->timer[0]),
                      ljp_timer_left_ns(s->timer[1])};
  int next = left[1] < left[0];
  if (atomic_load(&s->parked)) {
    atomic_store(&s->period_ns, period_ns); /* for when it is unparked */
    return true;
  }
  if (!at_once && (left[next] < old / 2 ||
                   ljp_task_answer(s->tid, s->signal) == LJP_TASK_ASKED))
    return false;
  uint64_t due = now + left[next];
  ljp_timer_set(s->timer[!next], TIMER_ABSTIME, due + period_ns, 2 * period_ns);
  ljp_timer_set(s->timer[next], TIMER_ABSTIME, due, 2 * period_ns);
  atomic_store(&s->period_ns, period_ns);
  return true;
}

const struct ljp_timer_source ljp_timer_posix = {.name = "posix",
                                                 .kind = LJP_TIMER_POSIX,
                                                 .available = posix_available,
                                                 .arm = posix_arm,
                                                 .end = posix_end,
                                                 .disarm = posix_disarm,
                                                 .renew = posix_renew};
