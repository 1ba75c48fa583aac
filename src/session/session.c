/*
** The lifecycle of a session: new, start, stop, free. See session.h. Ordinary
** code of any thread.
*/
#include "src/session/session.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/clock.h"
#include "src/base/copy.h"
#include "src/base/futex.h"
#include "src/base/store_name.h"
#include "src/session/session_impl.h"

enum { STUCK_SINK_S = 5, STUCK_THREAD_S = 10 };

const char *ljp_session_state_text(enum ljp_session_state state)
{
  switch (state) {
#define LJP_X(name, number, text)                                              \
  case LJP_SESSION_##name:                                                     \
    return text;
    LJP_SESSION_STATE_LIST(LJP_X)
#undef LJP_X
  }
  return "unknown";
}

/* Makes the writer of s->sink as s->options say. */
enum ljp_status ljp_session_make_writer(struct ljp_session *s)
{
  const struct ljp_writer_options options = {
      .describe = s->options.describe,
      .ljm = s->options.ljm,
      .zstd_level = s->options.zstd_level,
      .segment_bytes = s->options.segment_bytes,
      .segment_ns = s->options.segment_ms * UINT64_C(1000000),
      .keep_segments = s->options.keep_segments,
      .align_segments = s->service,
      .ring_bytes = s->options.ring_bytes};
  return ljp_writer_new(&s->writer, s->sink, &options);
}

enum ljp_status ljp_session_make_sink(struct ljp_session *s,
                                      struct ljp_sink *sink, const char *path)
{
  return s->service
             ? ljp_sink_init_store(sink, path, s->service, s->options.sync)
             : ljp_sink_init_file(sink, path, s->options.sync);
}

enum ljp_status ljp_session_new(struct ljp_session **out,
                                const struct ljp_session_options *options)
{
  const struct ljp_session_options *o = options;
  bool rotates = o->segment_bytes || o->segment_ms;
  if (!!o->path + o->use_fd + !!o->callback != 1 ||
      (rotates && !o->path && !(o->use_fd && o->next)) ||
      (o->path && !o->path[0]) ||
      (o->service && (!o->path || o->keep_segments ||
                      !ljp_store_service_valid(o->service))) ||
      (o->ring_bytes && !o->service) ||
      (o->ljm && (rotates || o->service || o->zstd_level)))
    return LJP_ERR_USE;
  struct ljp_session *s = calloc(1, sizeof *s);
  if (!s)
    return LJP_ERR_MEM;
  s->options = *o;
  s->options.path = s->options.service = NULL;
  s->inbox_end = &s->inbox;
  s->outlet.fd = s->inlet.fd = -1;
  pthread_mutex_init(&s->mutex, NULL);
  s->sink = calloc(1, sizeof *s->sink);
  enum ljp_status status = s->sink ? LJP_OK : LJP_ERR_MEM;
  if (!status && o->path) {
    s->path = strdup(o->path);
    s->service = o->service ? strdup(o->service) : NULL;
    if (!s->path || (o->service && !s->service))
      status = LJP_ERR_MEM;
    else
      status = ljp_session_make_sink(s, s->sink, s->path);
  } else if (!status && o->use_fd) {
    ljp_sink_init_fd(s->sink, o->fd, rotates ? o->next : NULL);
  } else if (!status) {
    ljp_sink_init_callback(s->sink, o->callback, o->callback_ctx);
  }
  if (!status) {
    s->sink->stays_hidden = o->provisional;
    status = ljp_session_make_writer(s);
  }
  if (status) {
    ljp_session_free(s);
    return status;
  }
  *out = s;
  return LJP_OK;
}

/* The thread is stuck (in a callback, or on a dead network disk). It keeps its
** session, and we abandon both. False: it has begun just now. */
static bool session_abandon(struct ljp_session *s, bool starting)
{
  pthread_mutex_lock(&s->mutex);
  bool stuck = !starting || s->state == LJP_SESSION_IDLE;
  if (stuck) {
    s->stuck = true;
    s->joinable = false;
    s->state = LJP_SESSION_FAILED;
    s->status = LJP_ERR_IO;
    s->error = ETIMEDOUT;
  }
  pthread_mutex_unlock(&s->mutex);
  if (stuck) {
    atomic_store_explicit(&s->stop, true, memory_order_release);
    ljp_session_decide(s, LJP_DISCARDED);
    ljp_session_deactivate(s);
    pthread_detach(s->thread);
  }
  return stuck;
}

/* Waits until this step of the start is over. */
static enum ljp_status session_await(struct ljp_session *s, uint32_t step)
{
  uint64_t until = ljp_clock_ns() + STUCK_THREAD_S * 1000000000ull;
  uint32_t over;
  /* Acquire: pairs with ljp_session_announce(). */
  while ((over = atomic_load_explicit(&s->started, memory_order_acquire)) <
         step) {
    if (ljp_clock_ns() > until && session_abandon(s, step == 1))
      return LJP_ERR_IO;
    ljp_futex_wait(&s->started, over, UINT64_C(1000000000));
  }
  pthread_mutex_lock(&s->mutex);
  enum ljp_status status = s->status;
  pthread_mutex_unlock(&s->mutex);
  return status;
}

/* Writes the first block on the calling thread, since the writer thread may run
** late on a busy machine. No signal is raised or handled meanwhile. */
static void session_begin_here(struct ljp_session *s)
{
  sigset_t all, before, pending, too_large;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  sigpending(&pending);
  ljp_sink_keep_old(s->sink);
  enum ljp_status status = ljp_writer_start(s->writer, ljp_clock_ns());
  if (status && s->sink->error == EFBIG && !sigismember(&pending, SIGXFSZ)) {
    static const struct timespec now = {0, 0};
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    sigtimedwait(&too_large, NULL, &now);
  }
  ljp_session_announce(s, status);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

enum ljp_status ljp_session_start(struct ljp_session *s)
{
  pthread_mutex_lock(&s->mutex);
  enum ljp_status status =
      s->state == LJP_SESSION_IDLE && !s->in_registry ? LJP_OK : LJP_ERR_RUN;
  if (!status)
    s->in_registry = true; /* No other thread may start it. */
  pthread_mutex_unlock(&s->mutex);
  if (status)
    return status;
  status = ljp_fork_register(s);
  /* If nobody reads the pipe, the first block must not wait for ever. */
  atomic_store_explicit(&s->sink->deadline_ns,
                        ljp_clock_ns() + STUCK_SINK_S * 1000000000ull,
                        memory_order_relaxed);
  s->begun = !s->options.apart && ljp_sink_is_local_file(s->sink);
  if (!status)
    status = ljp_session_spawn(s);
  if (status) {
    ljp_fork_unregister(s);
    s->state = LJP_SESSION_FAILED;
    s->status = status;
    return status;
  }
  if (s->begun)
    session_begin_here(s);
  status = session_await(s, 1);
  if (!s->stuck)
    atomic_store_explicit(&s->sink->deadline_ns, 0, memory_order_relaxed);
  return status;
}

/* The first decision counts. The writer is not woken for a commit after which
** it has nothing to do yet: it sees it when it is asked to come, or soon after.
** So a short session does not pay for its waking. */
void ljp_session_decide(struct ljp_session *s, enum ljp_decision decision)
{
  uint32_t none = LJP_UNDECIDED;
  /* The writer thread sees what this thread did with the sink. */
  if (!atomic_compare_exchange_strong(&s->decision, &none, decision) ||
      (decision == LJP_COMMITTED && s->begun && !atomic_load(&s->wake.word)))
    return;
  atomic_fetch_or(&s->wake.word, LJP_WAKE_DECIDED);
  ljp_futex_wake(&s->wake.word);
}

enum ljp_status ljp_session_commit(struct ljp_session *s)
{
  ljp_assert(s->options.provisional && !s->decision);
  if (!s->begun) {
    ljp_session_decide(s, LJP_COMMITTED);
    return session_await(s, 2);
  }
  /* As in the start, the calling thread itself does what takes no long time. */
  enum ljp_status status = ljp_sink_show(s->sink);
  ljp_session_announce(s, status);
  ljp_session_decide(s, status ? LJP_DISCARDED : LJP_COMMITTED);
  return status;
}

/* False: the thread is stuck. Not pthread_timedjoin_np(), whose time is the
** wall clock's, which may be set meanwhile. */
static bool session_await_end(struct ljp_session *s)
{
  uint64_t until = ljp_clock_ns() + STUCK_THREAD_S * 1000000000ull, now;
  /* Acquire: pairs with the end of the writer thread. */
  while (!atomic_load_explicit(&s->ended, memory_order_acquire)) {
    if ((now = ljp_clock_ns()) >= until)
      return false;
    ljp_futex_wait(&s->ended, 0, until - now);
  }
  return true;
}

enum ljp_status ljp_session_stop(struct ljp_session *s, int *error)
{
  bool join = false;
  ljp_copy_notice();
  pthread_mutex_lock(&s->mutex);
  if (s->state == LJP_SESSION_IDLE) {
    pthread_mutex_unlock(&s->mutex);
    return LJP_ERR_RUN;
  }
  if (s->joinable && pthread_equal(s->thread, pthread_self())) {
    pthread_mutex_unlock(&s->mutex); /* Called from one of our callbacks. */
    return LJP_ERR_USE;
  }
  join = s->joinable;
  s->joinable = false;
  pthread_mutex_unlock(&s->mutex);
  if (join) {
    atomic_store_explicit(&s->sink->deadline_ns,
                          ljp_clock_ns() + STUCK_SINK_S * 1000000000ull,
                          memory_order_relaxed);
    /* Release: the last round sees everything that the caller did before. */
    atomic_store_explicit(&s->stop, true, memory_order_release);
    atomic_store_explicit(&s->wake.word, LJP_WAKE_ROUND, memory_order_release);
    ljp_futex_wake(&s->wake.word);
    ljp_session_decide(s, LJP_DISCARDED);
    if (session_await_end(s)) {
      pthread_join(s->thread, NULL);
      ljp_fork_unregister(s);
    } else {
      session_abandon(s, false);
    }
  }
  pthread_mutex_lock(&s->mutex);
  enum ljp_status status = s->status;
  if (error)
    *error = s->error;
  pthread_mutex_unlock(&s->mutex);
  return status;
}

void ljp_session_free(struct ljp_session *s)
{
  if (!s)
    return;
  if (ljp_session_state(s) != LJP_SESSION_IDLE)
    ljp_session_stop(s, NULL);
  if (s->stuck)
    return;
  if (s->in_registry)
    ljp_fork_unregister(s);
  while (s->producers) {
    struct ljp_producer *p = s->producers;
    s->producers = p->next;
    ljp_producer_unmap(p);
  }
  ljp_message_free_list(s->inbox);
  ljp_message_free_list(s->members);
  ljp_session_close_passage(s);
  ljp_writer_free(s->writer);
  if (s->sink)
    ljp_sink_fini(s->sink);
  free(s->sink);
  free(s->path);
  free(s->service);
  pthread_mutex_destroy(&s->mutex);
  free(s);
}

enum ljp_status ljp_session_refusal_locked(const struct ljp_session *s)
{
  return s->state == LJP_SESSION_FAILED && s->status ? s->status : LJP_ERR_RUN;
}

int ljp_session_error(struct ljp_session *s)
{
  pthread_mutex_lock(&s->mutex);
  int error = s->state == LJP_SESSION_FAILED ? s->error : 0;
  pthread_mutex_unlock(&s->mutex);
  return error;
}

bool ljp_session_is_stuck(struct ljp_session *s)
{
  pthread_mutex_lock(&s->mutex);
  bool stuck = s->stuck;
  pthread_mutex_unlock(&s->mutex);
  return stuck;
}

enum ljp_session_state ljp_session_state(struct ljp_session *s)
{
  pthread_mutex_lock(&s->mutex);
  enum ljp_session_state state = s->state;
  pthread_mutex_unlock(&s->mutex);
  return state;
}

void ljp_session_wake(struct ljp_session *s)
{
  if (!atomic_exchange_explicit(&s->wake.word, LJP_WAKE_ROUND,
                                memory_order_acq_rel))
    ljp_futex_wake(&s->wake.word);
}

uint64_t ljp_session_bytes(struct ljp_session *s)
{
  return s->writer ? ljp_writer_bytes(s->writer) : 0;
}
