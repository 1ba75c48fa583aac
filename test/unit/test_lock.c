/*
** Locks of src/luajit: no update is lost, and a child of fork() or of a raw
** clone() finds the locks free.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include <pthread.h>

#include "src/base/copy.h"
#include "src/luajit/vm/lock.h"

enum { THREADS = 3, ROUNDS = 20011 };

static uint64_t counter[LJP_LOCKS];
static _Atomic int stop;

static void add(int which)
{
  ljp_lock((enum ljp_lock)which);
  counter[which]++;
  ljp_unlock((enum ljp_lock)which);
}

static void *count(void *arg)
{
  (void)arg;
  for (int i = 0; i < ROUNDS; i++)
    for (int which = 0; which < LJP_LOCKS; which++)
      add(which);
  return NULL;
}

static void no_update_is_lost(void **state)
{
  (void)state;
  pthread_t thread[THREADS];
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&thread[i], NULL, count, NULL), 0);
  for (int i = 0; i < THREADS; i++)
    pthread_join(thread[i], NULL);
  for (int which = 0; which < LJP_LOCKS; which++)
    assert_int_equal(counter[which], THREADS * ROUNDS);
}

/* Holds a lock most of the time. */
static void *hold(void *arg)
{
  enum ljp_lock which = (enum ljp_lock)(intptr_t)arg;
  while (!stop) {
    ljp_lock(which);
    usleep(300);
    ljp_unlock(which);
    usleep(20);
  }
  return NULL;
}

static void a_forks_child_finds_them_free(void **state)
{
  (void)state;
  pthread_t thread[LJP_LOCKS];
  for (intptr_t i = 0; i < LJP_LOCKS; i++)
    assert_int_equal(pthread_create(&thread[i], NULL, hold, (void *)i), 0);
  for (int round = 0; round < 53; round++) {
    pid_t pid = fork();
    if (pid == 0) {
      alarm(20); /* in case a lock is never released */
      for (int which = 0; which < LJP_LOCKS; which++)
        add(which);
      _exit(7);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
  }
  stop = 1;
  for (int i = 0; i < LJP_LOCKS; i++)
    pthread_join(thread[i], NULL);
}

/* No handler of fork() runs in a raw clone(). */
static void a_raw_copy_finds_them_free(void **state)
{
  (void)state;
  int status;
  ljp_copy_watch(); /* as each session does */
  for (int which = 0; which < LJP_LOCKS; which++)
    ljp_lock((enum ljp_lock)which);
  pid_t pid = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
  if (pid == 0) {
    alarm(20);
    for (int which = 0; which < LJP_LOCKS; which++)
      add(which);
    _exit(7);
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 7);
  for (int which = 0; which < LJP_LOCKS; which++)
    ljp_unlock((enum ljp_lock)which);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_update_is_lost),
      cmocka_unit_test(a_forks_child_finds_them_free),
      cmocka_unit_test(a_raw_copy_finds_them_free),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
