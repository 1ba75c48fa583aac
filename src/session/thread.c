/*
** The writer thread: rounds of draining, at least one in each flush interval.
** Invariants: all signals are blocked from the thread's first instruction on.
** It holds the session's mutex only to work on lists and status. It ends by
** itself when the host's last thread has ended.
*/
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/futex.h"
#include "src/session/fork.h"
#include "src/session/session_impl.h"
#include "src/writer/process.h"

enum { STACK_BYTES = 512 << 10, DESERTED_NS = 1000000000 };
#define LATE_HEAP_NS (UINT64_C(4) * 1000000000)

static struct ljp_message *thread_take_inbox_locked(struct ljp_session *s)
{
  struct ljp_message *list = s->inbox;
  s->inbox = NULL;
  s->inbox_end = &s->inbox;
  return list;
}

static struct ljp_message *thread_take_inbox(struct ljp_session *s)
{
  pthread_mutex_lock(&s->mutex);
  struct ljp_message *list = thread_take_inbox_locked(s);
  pthread_mutex_unlock(&s->mutex);
  return list;
}

static void thread_free_producer(struct ljp_session *s, struct ljp_producer *p)
{
  pthread_mutex_lock(&s->mutex);
  ljp_producer_unlink_locked(p);
  pthread_mutex_unlock(&s->mutex);
  ljp_producer_unmap(p);
}

static enum ljp_status thread_round(struct ljp_session *s, bool last)
{
  struct ljp_writer *w = s->writer;
  /* Acquire: the producer that set it filled its ring before. From here on the
  ** next producer wakes us again. */
  atomic_exchange_explicit(&s->wake.word, 0, memory_order_acquire);
  if (s->options.round && !last)
    s->options.round(s->options.round_ctx);
  ljp_session_settle_heaps(s);
  ljp_writer_begin(w, ljp_clock_ns());
  struct ljp_message *list = thread_take_inbox(s);
  for (const struct ljp_message *m = list; m; m = m->next) {
    if (m->type == LJP_MSG_INFO)
      ljp_writer_add_info(w, m->name, m->value);
    else if (m->type == LJP_MSG_THREAD)
      ljp_writer_add_thread(w, m->id, (uint32_t)m->tid, m->name);
    else if (m->type == LJP_MSG_VM)
      ljp_writer_add_vm(w, m->id, m->thread, m->name);
    else if (m->type == LJP_MSG_PRODUCER)
      ljp_writer_add_producer(w, m->producer, m->interval_ns);
  }
  ljp_writer_drain(w);
  for (const struct ljp_message *m = list; m; m = m->next) {
    if (m->type == LJP_MSG_RETIRE) {
      ljp_writer_retire(w, m->producer);
      thread_free_producer(s, m->producer);
    } else if (m->type == LJP_MSG_NOTE) {
      ljp_writer_note(w, m->severity, "%s", m->name);
    } else if (m->type == LJP_MSG_UNSAMPLED) {
      ljp_writer_put_unsampled(w, m->time_ns, m->thread, m->kind, m->why,
                               m->ns);
    } else if (m->type == LJP_MSG_CPU_TIME) {
      ljp_writer_put_cpu_time(w, m->time_ns, m->ns);
    } else if (m->type == LJP_MSG_ELAPSED) {
      ljp_writer_put_elapsed(w, m->time_ns, m->thread, m->ns);
    } else if (m->type == LJP_MSG_HEAP) {
      ljp_session_take_heap(s, m->heap);
    } else if (m->type == LJP_MSG_END_THREAD) {
      ljp_writer_end_thread(w, m->id);
    } else if (m->type == LJP_MSG_END_VM) {
      ljp_writer_end_vm(w, m->id);
    }
  }
  ljp_message_free_list(list);
  ljp_session_append_heaps(s);
  return ljp_writer_finish(w);
}

void ljp_session_announce(struct ljp_session *s, enum ljp_status status)
{
  pthread_mutex_lock(&s->mutex);
  if (!s->stuck) {
    s->status = status;
    s->error = status ? s->sink->error : 0;
    if (!s->child)
      s->state = status ? LJP_SESSION_FAILED : LJP_SESSION_RUNNING;
  }
  pthread_mutex_unlock(&s->mutex);
  /* Release: status and state are visible before started is. */
  atomic_fetch_add_explicit(&s->started, 1, memory_order_release);
  ljp_futex_call(&s->started, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
}

static bool thread_stopping(struct ljp_session *s)
{
  return atomic_load_explicit(&s->stop, memory_order_acquire);
}

static uint64_t thread_flush_ns(const struct ljp_session *s)
{
  return (s->options.flush_ms ? s->options.flush_ms : 250) * UINT64_C(1000000);
}

/* A provisional session: waits until its fate is known. Meanwhile the thread
** that starts the session may use the sink. Not each decision wakes us (see
** ljp_session_decide()): we see it when the first look or round is due. */
static enum ljp_status thread_await_decision(struct ljp_session *s)
{
  uint64_t again_ns = s->look ? s->first_look_ns : thread_flush_ns(s);
  uint32_t decision, why;
  enum ljp_status status = LJP_OK;
  while (why = atomic_load(&s->wake.word),
         !(decision = atomic_load(&s->decision)))
    ljp_futex_wait(&s->wake.word, why, again_ns);
  if (decision == LJP_COMMITTED && !s->begun) {
    status = ljp_sink_show(s->sink);
    ljp_session_announce(s, status);
  }
  return status;
}

/* The writer has ended, and uses no producer any more. From now on producers
** free themselves; those that were retired meanwhile are freed here. */
static void thread_end(struct ljp_session *s, enum ljp_status status, int error)
{
  pthread_mutex_lock(&s->mutex);
  if (!s->stuck) { /* Otherwise nobody waits for us any more. */
    s->status = status;
    s->error = status ? error : 0;
    s->state = status ? LJP_SESSION_FAILED : LJP_SESSION_STOPPED;
  }
  s->writer_alive = false;
  struct ljp_message *list = thread_take_inbox_locked(s);
  pthread_mutex_unlock(&s->mutex);
  for (const struct ljp_message *m = list; m; m = m->next)
    if (m->type == LJP_MSG_RETIRE)
      thread_free_producer(s, m->producer);
    else if (m->type == LJP_MSG_HEAP)
      ljp_session_take_heap(s, m->heap);
  ljp_message_free_list(list);
  ljp_session_drop_heaps(s, status ? error : ECANCELED);
  /* Release: who waits for the end sees everything that this thread did. */
  atomic_store_explicit(&s->ended, 1, memory_order_release);
  ljp_futex_call(&s->ended, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
}

void ljp_session_on_look(struct ljp_session *s, uint64_t (*look)(void),
                         uint64_t first_ns)
{
  s->look = look;
  s->first_look_ns = first_ns;
}

/* Waits until the next round is due; the last one was at since_ns. */
static void thread_wait(struct ljp_session *s, uint64_t since_ns)
{
  uint64_t now = ljp_clock_ns(), end = since_ns + thread_flush_ns(s);
  while (now < end && !s->heaps) {
    /* Acquire: the look sees why it was asked for. */
    atomic_fetch_and_explicit(&s->wake.word,
                              ~(uint32_t)(LJP_WAKE_LOOK | LJP_WAKE_DECIDED),
                              memory_order_acquire);
    uint64_t ns = s->look ? s->look() : end - now;
    if (!ns)
      return;
    ljp_futex_wait(&s->wake.word, 0, ns < end - now ? ns : end - now);
    if (atomic_load_explicit(&s->wake.word, memory_order_relaxed) &
        LJP_WAKE_ROUND)
      return;
    now = ljp_clock_ns();
  }
}

static void *thread_main(void *arg)
{
  struct ljp_session *s = arg;
  const char *reason = "stopped";
  uint64_t looked_ns = ljp_clock_ns(), round_ns;
  prctl(PR_SET_NAME, "ljprof-writer");
  if (s->child && !thread_stopping(s)) {
    /* The child may end or execute a program at once. */
    ljp_futex_wait(&s->wake.word, 0, thread_flush_ns(s));
    if (!thread_stopping(s))
      ljp_session_populate(s);
  }
  enum ljp_status status = LJP_OK;
  if (s->begun && !s->child) {
    /* Acquire: pairs with ljp_session_announce(). After it no other thread uses
    ** the writer. */
    while (!atomic_load_explicit(&s->started, memory_order_acquire))
      ljp_futex_wait(&s->started, 0, UINT64_C(1000000000));
    pthread_mutex_lock(&s->mutex);
    status = s->status;
    pthread_mutex_unlock(&s->mutex);
  } else {
    ljp_session_part(s);
    status =
        ljp_writer_start(s->writer, s->child ? s->forked_ns : ljp_clock_ns());
    if (status && s->child && s->options.child_refused)
      s->options.child_refused(s->sink->path, s->sink->error);
    ljp_session_announce(s, status);
    ljp_session_leave_standard(s);
  }
  round_ns = ljp_clock_ns();
  if (!status && s->options.provisional && !s->child)
    status = thread_await_decision(s);
  ljp_sink_release_old(s->sink);
  while (!status && !thread_stopping(s)) {
    thread_wait(s, round_ns);
    status = thread_round(s, false);
    round_ns = ljp_clock_ns();
    if (round_ns - looked_ns > DESERTED_NS) {
      looked_ns = round_ns;
      if (ljp_session_deserted()) {
        reason = "the program's threads have ended";
        break;
      }
    }
  }
  ljp_session_deactivate(s);
  /* Who stops a session waits for its snapshots before; not so who ends it in
  ** another way. */
  uint64_t until = ljp_clock_ns() + LATE_HEAP_NS;
  while (s->heaps && !status && ljp_clock_ns() < until)
    status = thread_round(s, false);
  /* After an error, too: the inbox must be emptied and losses counted. Twice,
  ** because the second round drains a producer that the first one adds. */
  thread_round(s, false);
  enum ljp_status drained = thread_round(s, true);
  status = status ? status : drained;
  int error = status ? s->sink->error : 0;
  ljp_session_drop_heaps(s, status ? error : ECANCELED);
  enum ljp_status ended = ljp_writer_end(
      s->writer, status, error, status ? ljp_status_text(status) : reason);
  thread_end(s, status ? status : ended, s->sink->error);
  return NULL;
}

enum ljp_status ljp_session_spawn(struct ljp_session *s)
{
  sigset_t all, before;
  pthread_attr_t attr;
  if (pthread_attr_init(&attr))
    return LJP_ERR_MEM;
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  pthread_attr_setstacksize(&attr, STACK_BYTES);
#endif
  /* The thread inherits the mask: no signal handler of the host runs in it. */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  s->writer_alive = true;
  s->joinable = true;
  atomic_store_explicit(&s->ended, 0, memory_order_relaxed);
  int error = pthread_create(&s->thread, &attr, thread_main, s);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
  if (error) {
    s->writer_alive = false;
    s->joinable = false;
    s->error = error;
    return LJP_ERR_MEM;
  }
  return LJP_OK;
}
