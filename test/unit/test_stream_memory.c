/*
** Out of memory at every point: allocation N fails, for each N, once or from
** then on. The session fails cleanly or continues, the file is valid, and each
** event is in the file or counted.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <sys/mman.h>

#include "test/stream/harsh.h"

static _Atomic long countdown;
static _Atomic bool armed, sticky, hit;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *s);
void *__real_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*body)(void *), void *arg);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *s);
void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*body)(void *), void *arg);

static bool fails(void)
{
  if (!atomic_load(&armed))
    return false;
  long left = atomic_fetch_sub(&countdown, 1);
  if (left == 0 || (left < 0 && atomic_load(&sticky))) {
    atomic_store(&hit, true);
    errno = ENOMEM;
    return true;
  }
  return false;
}

void *__wrap_malloc(size_t size)
{
  return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
  return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
  return fails() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *s)
{
  return fails() ? NULL : __real_strdup(s);
}

void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
  return fails() ? MAP_FAILED : __real_mmap(at, len, prot, flags, fd, off);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*body)(void *), void *arg)
{
  return fails() ? EAGAIN : __real_pthread_create(thread, attr, body, arg);
}

static char path[] = "/tmp/ljp-memory-XXXXXX";

struct outcome {
  bool started, ended_well;
  uint64_t pushed, refused;
};

static void push_all(struct ljp_producer *p, struct outcome *o)
{
  for (uint32_t i = 0; i < 3001; i++) {
    const uint64_t frames[] = {ljp_frame_lua(LJP_FRAME_LUA, 0, i % 511 + 1, i),
                               ljp_frame_lua(LJP_FRAME_LUA, 0, i % 17 + 1, 1),
                               ljp_frame(LJP_FRAME_HOST, 0, 0x1000u + i % 7)};
    const struct ljp_sample s = {.time_ns = ljp_clock_ns()};
    bool in = ljp_push_sample(p, &s, frames, 3);
    o->pushed += in;
    o->refused += !in;
    if (i % 100 == 0)
      usleep(50);
  }
}

static struct outcome run_session(void)
{
  struct outcome o = {0};
  struct ljp_session *s = NULL;
  struct ljp_producer *p = NULL;
  uint32_t thread = 0, vm = 0;
  const struct ljp_session_options options = {
      .path = path, .flush_ms = 1, .describe = known()};
  enum ljp_status status = ljp_session_new(&s, &options);
  if (status) {
    assert_int_equal(status, LJP_ERR_MEM);
    return o;
  }
  status = ljp_session_start(s);
  o.started = status == LJP_OK;
  if (o.started) {
    ljp_session_add_thread(s, gettid(), "main", &thread);
    ljp_session_add_vm(s, thread, "vm", &vm);
    if (!ljp_session_add_producer(s, LJP_PRODUCER_CPU, thread, 1, 0, &p)) {
      push_all(p, &o);
      ljp_producer_retire(p);
    }
    ljp_session_end_vm(s, vm);
    o.ended_well = ljp_session_stop(s, NULL) == LJP_OK;
  } else {
    assert_true(status == LJP_ERR_MEM || status == LJP_ERR_IO);
  }
  ljp_session_free(s);
  return o;
}

/* False: there were fewer allocations than N. */
static bool with_failure_at(long n, bool forever)
{
  unlink(path);
  atomic_store(&countdown, n);
  atomic_store(&sticky, forever);
  atomic_store(&hit, false);
  atomic_store(&armed, true);
  struct outcome o = run_session();
  atomic_store(&armed, false);
  if (!o.started) {
    assert_int_equal(access(path, F_OK), -1);
    return atomic_load(&hit);
  }
  struct mini *m = mini_new();
  if (!mini_read_file(m, path, NULL))
    fail_msg("allocation %ld: %s", n, m->error);
  if (o.ended_well) {
    uint64_t lost = 0;
    for (int i = 0; i < 16; i++)
      lost += m->lost[i];
    assert_true(m->clean);
    if (m->events[LJP_REC_SAMPLES] + lost != o.pushed + o.refused &&
        !m->events[LJP_REC_NOTE])
      fail_msg("allocation %ld: %llu samples and %llu losses of %llu", n,
               (unsigned long long)m->events[LJP_REC_SAMPLES],
               (unsigned long long)lost,
               (unsigned long long)(o.pushed + o.refused));
  }
  mini_free(m);
  return atomic_load(&hit);
}

static void any_one_allocation_may_fail(void **state)
{
  (void)state;
  long n = 0;
  for (; n < 5000 && with_failure_at(n, false); n++)
    if (n > 300)
      n += 40; /* The definitions of prototypes are all alike. */
  assert_in_range(n, 30, 4999);
}

static void all_allocations_may_fail_from_any_point_on(void **state)
{
  (void)state;
  long n = 0;
  for (; n < 5000 && with_failure_at(n, true); n++)
    if (n > 100)
      n += 40;
  assert_in_range(n, 30, 4999);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_one_allocation_may_fail),
      cmocka_unit_test(all_allocations_may_fail_from_any_point_on),
  };
  int fd = mkstemp(path);
  close(fd);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  unlink(path);
  return failed;
}
