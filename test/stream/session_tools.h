/*
** Shared by the tests of sessions: a folder of their own, a running session,
** samples, and reading a file back. Include it after cmocka.h.
*/
#ifndef LJP_TEST_SESSION_TOOLS_H
#define LJP_TEST_SESSION_TOOLS_H

#include <unistd.h>

#include "src/base/clock.h"
#include "src/session/session.h"
#include "test/stream/mini_reader.h"
#include "test/stream/source.h"

static char dir[] = "/tmp/ljp-session-XXXXXX";
static char path[200];

static inline const char *in_dir(const char *name)
{
  snprintf(path, sizeof path, "%s/%s", dir, name);
  return path;
}

static inline int make_dir(void **state)
{
  (void)state;
  return mkdtemp(dir) ? 0 : -1;
}

static inline int remove_dir(void **state)
{
  (void)state;
  char command[300];
  snprintf(command, sizeof command, "rm -r %s", dir);
  return system(command);
}

static inline struct ljp_session *started(struct ljp_session_options *o)
{
  struct ljp_session *s;
  o->describe = known();
  if (!o->flush_ms)
    o->flush_ms = 5;
  assert_int_equal(ljp_session_new(&s, o), LJP_OK);
  assert_int_equal(ljp_session_start(s), LJP_OK);
  assert_int_equal(ljp_session_state(s), LJP_SESSION_RUNNING);
  return s;
}

static inline struct ljp_producer *producer(struct ljp_session *s,
                                            enum ljp_producer_kind kind)
{
  struct ljp_producer *p;
  uint32_t thread;
  assert_int_equal(ljp_session_add_thread(s, gettid(), "main", &thread),
                   LJP_OK);
  assert_int_equal(ljp_session_add_producer(s, kind, thread, 1000000, 0, &p),
                   LJP_OK);
  return p;
}

/* Pushes until the ring has room, so that no sample is lost. */
static inline void sample(struct ljp_producer *p, uint32_t ref)
{
  uint64_t frames[] = {ljp_frame_lua(LJP_FRAME_LUA, 0, ref + 2, 3),
                       ljp_frame_lua(LJP_FRAME_LUA, 0, 1, 7)};
  struct ljp_sample s = {.time_ns = ljp_clock_ns(), .weight = 1000003};
  while (!ljp_push_sample(p, &s, frames, 2) && ljp_producer_active(p))
    usleep(100);
}

static inline struct mini *read_back(const char *file)
{
  struct mini *m = mini_new();
  uint64_t bytes;
  if (!mini_read_file(m, file, &bytes))
    fail_msg("%s: %s", file, m->error);
  assert_int_equal(m->end_offset, bytes);
  return m;
}

#endif
