/*
** A profiler's lock: threads that come first at the same time do not both get
** it (also under TSan: ./run test), and a child of fork() finds it free.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "profilers/session/lock.h"
#include "src/base/cancel.h"

enum { THREADS = 4, LOCKS = 503 };

static struct ljp_profiler_lock locks[LOCKS];
static unsigned counted[LOCKS];
static pthread_barrier_t together;

static void *take_all(void *arg)
{
  for (int i = 0; i < LOCKS; i++) {
    pthread_barrier_wait(&together);
    ljp_profiler_lock(&locks[i]);
    counted[i]++;
    ljp_profiler_unlock(&locks[i]);
  }
  return arg;
}

static unsigned run_threads(void)
{
  pthread_t threads[THREADS];
  unsigned sum = 0;
  pthread_barrier_init(&together, NULL, THREADS);
  for (int t = 0; t < THREADS; t++)
    assert_int_equal(pthread_create(&threads[t], NULL, take_all, NULL), 0);
  for (int t = 0; t < THREADS; t++)
    pthread_join(threads[t], NULL);
  pthread_barrier_destroy(&together);
  for (int i = 0; i < LOCKS; i++)
    sum += counted[i];
  return sum;
}

static void reset(pid_t pid)
{
  for (int i = 0; i < LOCKS; i++) {
    locks[i] = (struct ljp_profiler_lock)LJP_PROFILER_LOCK_INIT(NULL);
    locks[i].pid = pid;
    counted[i] = 0;
  }
}

static void threads_that_come_first_take_turns(void **state)
{
  (void)state;
  reset(0);
  assert_int_equal(run_threads(), THREADS * LOCKS);
  assert_int_equal(locks[LOCKS - 1].pid, getpid());
}

static void so_do_threads_of_a_child_whose_parent_held_it(void **state)
{
  (void)state;
  reset(getppid());
#ifndef __SANITIZE_THREAD__ /* TSan does not expect a mutex to be made new. */
  for (int i = 0; i < LOCKS; i++)
    pthread_mutex_lock(&locks[i].mutex); /* by a thread that is gone */
#endif
  assert_int_equal(run_threads(), THREADS * LOCKS);
  /* As if the parent had forked while it made the lock new. */
  reset(-getppid());
  assert_int_equal(run_threads(), THREADS * LOCKS);
}

static int told;

static void tell(void *ctx, bool left)
{
  assert_false(left);
  told += *(int *)ctx;
}

static void who_waits_for_the_end_is_told_once_when_it_is_free(void **state)
{
  (void)state;
  static int number = 7;
  reset(0);
  ljp_profiler_lock(&locks[0]);
  locks[0].on_stop = tell;
  locks[0].on_stop_ctx = &number;
  ljp_profiler_unlock(&locks[0]);
  ljp_profiler_lock(&locks[0]);
  ljp_profiler_unlock(&locks[0]);
  assert_int_equal(told, 7);
}

/* Is this thread's cancellation on? */
static bool cancellable(void)
{
  int before, ignored;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  pthread_setcancelstate(before, &ignored);
  return before == PTHREAD_CANCEL_ENABLE;
}

static void *cancelled_while_it_holds_two(void *ended)
{
  ljp_profiler_lock(&locks[0]);
  assert_true(ljp_profiler_trylock(&locks[1]));
  pthread_cancel(pthread_self());
  usleep(1000); /* a cancellation point */
  ljp_profiler_unlock(&locks[0]);
  pthread_testcancel();
  assert_false(cancellable());
  ljp_profiler_unlock(&locks[1]);
  *(bool *)ended = cancellable();
  pthread_testcancel();
  *(bool *)ended = false;
  return NULL;
}

static void who_holds_a_lock_is_not_cancelled(void **state)
{
  (void)state;
  bool ended = false;
  pthread_t thread;
  void *result;
  reset(0);

  ljp_profiler_lock(&locks[1]); /* from now on it is this process's */
  ljp_profiler_unlock(&locks[1]);
  assert_true(cancellable());
  assert_int_equal(
      pthread_create(&thread, NULL, cancelled_while_it_holds_two, &ended), 0);
  pthread_join(thread, &result);
  assert_ptr_equal(result, PTHREAD_CANCELED);
  assert_true(ended);
  assert_true(ljp_profiler_trylock(&locks[0]));
  ljp_profiler_unlock(&locks[0]);
  assert_true(ljp_profiler_trylock(&locks[1]));
  ljp_profiler_unlock(&locks[1]);
}

static void at_exit_only_who_has_had_it_takes_it(void **state)
{
  (void)state;
  reset(0);
  assert_false(ljp_profiler_lock_at_exit(&locks[0]));
  ljp_profiler_lock(&locks[0]);
  assert_false(ljp_profiler_trylock(&locks[0]));
  ljp_profiler_unlock(&locks[0]);
  assert_true(ljp_profiler_lock_at_exit(&locks[0]));
  ljp_profiler_unlock(&locks[0]);
  locks[0].pid = getppid();
  assert_false(ljp_profiler_lock_at_exit(&locks[0]));
}

static void *try_it(void *lock)
{
  bool got = ljp_profiler_trylock(lock);
  if (got)
    ljp_profiler_unlock(lock);
  return got ? lock : NULL;
}

static bool another_thread_gets(struct ljp_profiler_lock *lock)
{
  pthread_t thread;
  void *got;
  assert_int_equal(pthread_create(&thread, NULL, try_it, lock), 0);
  pthread_join(thread, &got);
  return got;
}

static void no_round_begins_before_a_child_is_ready(void **state)
{
  (void)state;
  static int number = 11;
  reset(0);
  told = 0;
  ljp_profiler_lock(&locks[0]);
  locks[0].on_stop = tell;
  locks[0].on_stop_ctx = &number;
  /* As if this were the child. (The lock is made anew. If this thread still
  ** held it, TSan would report that it is locked twice.) */
  pthread_mutex_unlock(&locks[0].mutex);
  ljp_cancel_on();
  locks[0].pid = getppid();
  assert_false(another_thread_gets(&locks[0]));
  ljp_profiler_lock_forked(&locks[0]);
  assert_false(another_thread_gets(&locks[0]));
  ljp_profiler_unlock(&locks[0]);
  assert_true(another_thread_gets(&locks[0]));
  assert_int_equal(told, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threads_that_come_first_take_turns),
      cmocka_unit_test(so_do_threads_of_a_child_whose_parent_held_it),
      cmocka_unit_test(who_waits_for_the_end_is_told_once_when_it_is_free),
      cmocka_unit_test(no_round_begins_before_a_child_is_ready),
      cmocka_unit_test(who_holds_a_lock_is_not_cancelled),
      cmocka_unit_test(at_exit_only_who_has_had_it_takes_it)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
