/*
** For tests in which a process dies or forks: a session under load, in a child.
*/
#ifndef LJP_TEST_HARSH_H
#define LJP_TEST_HARSH_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "src/base/clock.h"
#include "src/push/event.h"
#include "src/session/session.h"
#include "test/stream/mini_reader.h"
#include "test/stream/source.h"

static inline struct ljp_session *harsh_start(struct ljp_session_options *o,
                                              enum ljp_status expected)
{
  struct ljp_session *s = NULL;
  o->describe = known();
  if (ljp_session_new(&s, o) != LJP_OK || ljp_session_start(s) != expected) {
    fprintf(stderr, "cannot start\n");
    _exit(70);
  }
  return s;
}

static inline struct ljp_producer *harsh_producer(struct ljp_session *s,
                                                  uint32_t thread)
{
  struct ljp_producer *p = NULL;
  if (ljp_session_add_producer(s, LJP_PRODUCER_CPU, thread, 1000, 0, &p))
    _exit(71);
  return p;
}

/* Pushes one sample with a stack of 10 frames that changes. */
static inline bool harsh_push(struct ljp_producer *p, uint64_t i)
{
  uint64_t frames[10];
  for (unsigned k = 0; k < 10; k++)
    frames[k] = ljp_frame_lua(LJP_FRAME_LUA, 0,
                              (uint32_t)(i * (10 - k) % 97 + k + 1), k);
  struct ljp_sample s = {.time_ns = ljp_clock_ns(), .weight = 1000003};
  return ljp_push_sample(p, &s, frames, 10);
}

/* Runs body in a child and returns its wait status. */
static inline int harsh_child(void (*body)(void *), void *ctx)
{
  pid_t pid = fork();
  if (pid == 0) {
    body(ctx);
    _exit(0);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    continue;
  return status;
}

/* -- The folder of the test ------------------------------------------------ */

static char harsh_dir[] = "/tmp/ljp-harsh-XXXXXX";
static char harsh_last_path[200];

/* Makes a path below the test's folder; valid until the next call. */
static inline const char *harsh_path(const char *name)
{
  snprintf(harsh_last_path, sizeof harsh_last_path, "%s/%s", harsh_dir, name);
  return harsh_last_path;
}

static inline int harsh_make_dir(void **state)
{
  (void)state;
  return mkdtemp(harsh_dir) ? 0 : -1;
}

static inline int harsh_remove_dir(void **state)
{
  (void)state;
  char command[300];
  snprintf(command, sizeof command, "rm -r %s", harsh_dir);
  return system(command);
}

/* -- Sanitizers ------------------------------------------------------------ */

/* TSan cannot start threads in a fork's child, and has a thread of its own. */
static inline void harsh_skip_under_tsan(void)
{
#ifdef __SANITIZE_THREAD__
  skip();
#endif
}

/* GCC 12's address sanitizer does not take its own locks at fork(), and no lock
** is taken at a raw clone(). If another thread holds one then, a child that
** allocates memory or ends a thread waits for ever. Busy machines showed it in
** one run of twenty. */
static inline void harsh_skip_under_asan(void)
{
#ifdef __SANITIZE_ADDRESS__
  skip();
#endif
}

#endif
