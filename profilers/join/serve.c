/*
** Serve: what a client can ask for: the sessions that there are, and a session of
** its own (recording.h; serve_stacks.c: stacks; serve_heap.c: heap snapshots).
** Such a session has no first thread, and no VM owns it.
**
** The session belongs to the client that has begun it, and ends with it. It may
** also end by its time, at exit(), or because another client asks for that.
** serve_ended() is called then, on any thread.
*/
#include "profilers/join/serve.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profilers/cpu/signal.h"
#include "profilers/cpu/sysprof.h"
#include "profilers/join/options.h"
#include "profilers/join/segments.h"
#include "profilers/memory/heap_joined.h"
#include "profilers/memory/memprof.h"
#include "profilers/session/shared.h"
#include "profilers/session/side_run.h"
#include "src/base/clock.h"
#include "src/base/futex.h"
#include "src/base/join.h"
#include "src/base/own_proc.h"
#include "src/base/shown.h"
#include "src/luajit/vms.h"

/* The session that a client has begun: there is one at most. Its number tells
** whether the one that ended is the present one. Written by the
** helper whose session begins, which it does only after the last has ended. */
static struct {
  _Atomic uint32_t number, ended;
  _Atomic uint32_t told;     /* its owner has seen its end */
  _Atomic int beginning;     /* the process in which a helper begins one */
  _Atomic uint32_t unwanted; /* another client asks for its end */
  _Atomic uint64_t began_ns;
} serve_session;

static void serve_ended(void *number, bool left)
{
  uint32_t ended = (uint32_t)(uintptr_t)number;
  (void)left;
  atomic_store(&serve_session.ended, ended);
  ljp_futex_call(&serve_session.ended, FUTEX_WAKE_PRIVATE, 4, NULL);
}

static bool serve_number_has_ended(uint32_t number)
{
  return (int32_t)(atomic_load(&serve_session.ended) - number) >= 0;
}

/* -- Answers --------------------------------------------------------------- */
static void serve_send(struct ljp_serve *serve,
                       const struct ljp_join_message *m)
{
  ljp_join_send(serve->socket, m);
}

static void serve_refuse(struct ljp_serve *serve, uint32_t serial,
                         const char *text)
{
  struct ljp_join_message m = {.type = LJP_JOIN_ERROR, .serial = serial};
  ljp_join_set_text(&m, 0, text);
  serve_send(serve, &m);
}

static void serve_count_vm(void *count, uint32_t number)
{
  (void)number;
  ++*(uint64_t *)count;
}

static uint64_t serve_vms(void)
{
  uint64_t count = 0;
  ljp_guest_each_vm(serve_count_vm, &count);
  return count;
}

static uint64_t serve_sessions(void)
{
  return (ljp_sysprof_running() ? LJP_JOIN_SESSION_CPU : 0) |
         (ljp_memprof_running() ? LJP_JOIN_SESSION_MEMORY : 0);
}

void ljp_serve_welcome(struct ljp_serve *serve, uint32_t serial)
{
  struct ljp_join_message m = {.type = LJP_JOIN_WELCOME,
                               .serial = serial,
                               .number = {LJP_JOIN_PROTOCOL, (uint64_t)getpid(),
                                          serve_vms(), serve_sessions()}};
  ljp_join_set_text(&m, 0, ljp_shown.version);
  serve_send(serve, &m);
}

static void serve_state(struct ljp_serve *serve, uint32_t serial)
{
  struct ljp_join_message m = {.type = LJP_JOIN_STATE, .serial = serial};
  struct ljp_sysprof_status cpu;
  struct ljp_memprof_status memory;
  uint64_t sums[LJP_RECORDING_SUMS];
  char path[1024];
  ljp_sysprof_status(&cpu);
  ljp_memprof_status(&memory);
  uint64_t began = atomic_load(&serve_session.began_ns);
  m.number[0] = serve_vms();
  m.number[1] = serve_sessions();
  m.number[2] = (uint64_t)cpu.client;
  ljp_recording_sums((unsigned)m.number[1], sums);
  memcpy(&m.number[3], sums, 3 * sizeof *sums);
  m.number[6] = cpu.threads;
  m.number[7] = cpu.client || memory.client ? ljp_clock_ns() - began : 0;
  m.number[8] = (uint64_t)memory.client;
  m.number[9] = sums[LJP_RECORDING_EVENTS];
  ljp_join_set_text(&m, 0, cpu.running ? cpu.state : memory.state);
  ljp_join_set_text(&m, 1, cpu.timer ? cpu.timer : "");
  ljp_join_clean(path, sizeof path, cpu.running ? cpu.path : memory.path);
  ljp_join_set_text(&m, 2, path);
  serve_send(serve, &m);
}

/* -- A session ------------------------------------------------------------- */
/* In place of ljp_signal_default(), which takes a signal that the calling thread
** does not block: a helper blocks nearly all of them. */
static int serve_signal(void)
{
  return ljp_signal_handler(SIGURG) == LJP_HANDLER_OTHER &&
                 ljp_signal_handler(SIGWINCH) != LJP_HANDLER_OTHER
             ? SIGWINCH
             : SIGURG;
}

/* If a session has just ended, its owner's helper first sees that, at its next
** turn, and takes its sums. */
static void serve_await_end(void)
{
  enum { WAIT_NS = 50000000, WAITS = 10 };
  uint32_t number = atomic_load(&serve_session.number);
  for (int i = 0; i < WAITS; i++) {
    uint32_t told = atomic_load(&serve_session.told);
    if (told == number || !serve_number_has_ended(number))
      break;
    ljp_futex_wait(&serve_session.told, told, WAIT_NS);
  }
}

/* One client at a time records, also if another one wants the other kind of
** session. */
static bool serve_claim(struct ljp_failure *why)
{
  int pid = getpid(), was = atomic_load(&serve_session.beginning);
  if (was == pid ||
      !atomic_compare_exchange_strong(&serve_session.beginning, &was, pid)) {
    ljp_fail(why, LJP_ERR_RUN, EBUSY,
             "another ljprof is just beginning to record it; try again");
    return false;
  }
  serve_await_end();
  pid_t client = ljp_recording_client();
  if (client) {
    ljp_fail(why, LJP_ERR_RUN, EBUSY,
             "profiler is running already, for ljprof (process %d), which has "
             "joined the program",
             (int)client);
    atomic_store(&serve_session.beginning, 0);
  }
  return !client;
}

static void serve_start(struct ljp_serve *serve, struct ljp_join_message *m)
{
  struct ljp_recording r;
  struct ljp_failure why;
  char text[LJP_JOIN_MESSAGE_BYTES];
  if (serve->records) {
    serve_refuse(serve, m->serial, "this client records already");
    return;
  }
  ljp_join_text(m, 0, text, sizeof text);
  ljp_side_bind();
  if (!ljp_join_options(&r, text, &why) || !serve_claim(&why)) {
    serve_refuse(serve, m->serial, why.text);
    return;
  }
  if (!r.cpu.signal)
    r.cpu.signal = serve_signal();
  uint32_t number = atomic_load(&serve_session.number) + 1;
  r.cpu.client = (pid_t)serve->client_pid;
  r.cpu.output.use_fd = true;
  r.cpu.output.fd = m->fd[0];
  r.cpu.output.next = &ljp_segments_next;
  r.cpu.output.on_stop = serve_ended;
  r.cpu.output.on_stop_ctx = (void *)(uintptr_t)number;
  r.cpu.jitdump = m->fds == 3;
  r.cpu.jitdump_fds = r.cpu.jitdump ? &m->fd[1] : NULL;
  ljp_join_step("starting");
  atomic_store(&serve_session.began_ns, ljp_clock_ns());
  ljp_segments_begin();
  if (ljp_recording_start(&r, &why)) {
    if (atomic_load(&serve_session.ended) == number) {
      atomic_store(&serve_session.told, number);
      atomic_store(&serve_session.number, number);
    }
    atomic_store(&serve_session.beginning, 0);
    serve_refuse(serve, m->serial, why.text);
    return;
  }
  atomic_store(&serve_session.number, number);
  atomic_store(&serve_session.beginning, 0);
  serve->number = number;
  serve->dumps = r.cpu.jitdump;
  serve->room = r.room;
  serve->output = m->fd[0];
  serve->records = true;
  while (m->fds > 1)
    close(m->fd[--m->fds]);
  m->fds = 0;
  ljp_join_step("committed");
  const struct ljp_join_message started = {.type = LJP_JOIN_STARTED,
                                           .serial = m->serial};
  serve_send(serve, &started);
}

int ljp_serve_pause_ms(const struct ljp_serve *serve)
{
  enum { TURN_MS = 200, IDLE_MS = 1000 };
  if (serve->heap && ljp_heap_asked_waits(serve->heap))
    return 0; /* ljp_serve_turn() waits */
  return serve->records ? TURN_MS : IDLE_MS;
}

/* Has the session of this client ended? The present one may be another's. */
static bool serve_has_ended(const struct ljp_serve *serve)
{
  return serve_number_has_ended(serve->number);
}

/* The session has ended, and its writer has, too. Then another may begin. */
static void serve_close(struct ljp_serve *serve)
{
  ljp_segments_end(&serve->output);
  close(serve->output);
  serve->records = false;
  atomic_store(&serve_session.told, serve->number);
  ljp_futex_call(&serve_session.told, FUTEX_WAKE_PRIVATE, 4, NULL);
}

/* Is the jitdump complete, if the session has one? */
static enum ljp_status serve_dumped(const struct ljp_serve *serve,
                                    struct ljp_failure *why)
{
  const char *error = serve->dumps ? ljp_sysprof_dump_error() : NULL;
  return error ? ljp_fail(why, LJP_ERR_IO, EIO, "the jitdump ends early: %s",
                          error)
               : LJP_OK;
}

static enum ljp_status serve_stop_own(const struct ljp_serve *serve,
                                      struct ljp_failure *why)
{
  return serve_has_ended(serve) ? LJP_OK : ljp_recording_stop(why);
}

/* Another helper has begun the session, and its timers are in that helper's
** table of descriptors: it is asked to end it, and does so at its next turn. */
static enum ljp_status serve_stop_others(struct ljp_failure *why)
{
  enum { WAIT_NS = 100000000, WAITS = 50 };
  /* One that begins just now has no number yet. */
  for (int i = 0;
       i < WAITS && atomic_load(&serve_session.beginning) == getpid(); i++)
    ljp_futex_wait(&serve_session.ended, atomic_load(&serve_session.ended),
                   WAIT_NS / 10);
  if (ljp_recording_client()) {
    uint32_t number = atomic_load(&serve_session.number);
    atomic_store(&serve_session.unwanted, number);
    for (int i = 0; i < WAITS && !serve_number_has_ended(number); i++)
      ljp_futex_wait(&serve_session.ended, atomic_load(&serve_session.ended),
                     WAIT_NS);
    if (serve_number_has_ended(number))
      return LJP_OK;
  }
  return ljp_recording_stop(why);
}

static void serve_stop(struct ljp_serve *serve,
                       const struct ljp_join_message *m)
{
  struct ljp_join_message out = {.type = LJP_JOIN_STOPPED, .serial = m->serial};
  struct ljp_failure why;
  if (!serve->records && !m->number[0]) {
    serve_refuse(serve, m->serial, "this client does not record");
    return;
  }
  enum ljp_status status =
      serve->records ? serve_stop_own(serve, &why) : serve_stop_others(&why);
  if (!status && serve->records)
    status = serve_dumped(serve, &why);
  ljp_recording_sums(ljp_recording_parts(), out.number);
  if (serve->records && serve_has_ended(serve))
    serve_close(serve);
  if (status)
    serve_refuse(serve, m->serial, why.text);
  else
    serve_send(serve, &out);
}

/* A combined session gets one mark, by the memory profiler, which knows the
** heap's size. */
static void serve_mark(struct ljp_serve *serve,
                       const struct ljp_join_message *m)
{
  struct ljp_join_message out = {.type = LJP_JOIN_MARKED, .serial = m->serial};
  uint64_t sessions = serve_sessions();
  struct ljp_failure why;
  char name[LJP_JOIN_MESSAGE_BYTES];
  ljp_join_text(m, 0, name, sizeof name);
  enum ljp_status status = LJP_OK;
  if (!sessions)
    status = ljp_fail(&why, LJP_ERR_RUN, EINVAL,
                      "no session runs, so there is nothing to mark");
  if (sessions & LJP_JOIN_SESSION_MEMORY)
    status = ljp_memprof_mark_all(name, m->length[0], &why);
  if (!status && sessions & LJP_JOIN_SESSION_CPU && !ljp_shared_in_use())
    status = ljp_sysprof_mark(name, m->length[0], &why);
  if (status) {
    serve_refuse(serve, m->serial, why.text);
    return;
  }
  out.number[0] = sessions;
  serve_send(serve, &out);
}

/* A session whose output has failed records nothing more: it ends. True: it has
** ended now, and *why says for which reason. */
static bool serve_has_failed(const struct ljp_serve *serve,
                             struct ljp_failure *why)
{
  struct ljp_failure dump;
  bool dumped = serve_dumped(serve, &dump) == LJP_OK;
  if (dumped && !ljp_recording_failed(true))
    return false;
  if (!ljp_recording_stop(why))
    ljp_fail(why, LJP_ERR_IO, EIO, "the output could not be written");
  if (!dumped)
    *why = dump;
  return serve_has_ended(serve);
}

/* The client reads its output too slowly, or no more: the disk must not fill.
** As above. */
static bool serve_is_full(const struct ljp_serve *serve,
                          struct ljp_failure *why)
{
  struct stat st;
  if (!serve->room || fstat(serve->output, &st) ||
      (uint64_t)st.st_blocks * 512 <= serve->room)
    return false;
  if (!ljp_recording_stop(why))
    ljp_fail(why, LJP_ERR_IO, ENOSPC,
             "what was recorded and not read has filled its %.1f MiB",
             (double)serve->room / (1 << 20));
  return serve_has_ended(serve);
}

void ljp_serve_turn(struct ljp_serve *serve)
{
  struct ljp_join_message m = {.type = LJP_JOIN_ENDED};
  uint64_t sums[LJP_RECORDING_SUMS];
  struct ljp_failure why;
  ljp_serve_heap_turn(serve);
  ljp_serve_stacks_turn(serve);
  if (!serve->records)
    return;
  ljp_segments_turn(serve->socket, &serve->output);
  if (!serve_has_ended(serve) &&
      atomic_load(&serve_session.unwanted) == serve->number)
    ljp_recording_stop(&why);
  bool failed = !serve_has_ended(serve) &&
                (serve_has_failed(serve, &why) || serve_is_full(serve, &why));
  if (!failed && !serve_has_ended(serve))
    return;
  ljp_recording_sums(ljp_recording_parts(), sums);
  memcpy(m.number, sums, 3 * sizeof *sums);
  if (failed)
    ljp_join_set_text(&m, 0, why.text);
  else if (ljp_recording_failed(false))
    ljp_join_set_text(&m, 0, "the output could not be written");
  else if (serve_dumped(serve, &why))
    ljp_join_set_text(&m, 0, why.text);
  serve_close(serve);
  ljp_join_step("ended");
  serve_send(serve, &m);
}

void ljp_serve_end(struct ljp_serve *serve)
{
  enum { WAIT_NS = 100000000, WAITS = 100 };
  struct ljp_failure why;
  ljp_serve_stacks_end(serve);
  ljp_serve_heap_end(serve);
  if (!serve->records)
    return;
  serve_stop_own(serve, &why);
  /* Another thread may be ending it just now. */
  for (int i = 0; i < WAITS && !serve_has_ended(serve); i++)
    ljp_futex_wait(&serve_session.ended, atomic_load(&serve_session.ended),
                   WAIT_NS);
  if (serve_has_ended(serve))
    serve_close(serve);
}

bool ljp_serve(struct ljp_serve *serve, struct ljp_join_message *m)
{
  switch (m->type) {
  case LJP_JOIN_START:
    serve_start(serve, m);
    return true;
  case LJP_JOIN_STOP:
    serve_stop(serve, m);
    return true;
  case LJP_JOIN_STATUS:
    serve_state(serve, m->serial);
    return true;
  case LJP_JOIN_MARK:
    serve_mark(serve, m);
    return true;
  case LJP_JOIN_STACKS:
  case LJP_JOIN_PLACE:
  case LJP_JOIN_TELL:
    ljp_serve_stacks(serve, m);
    return true;
  case LJP_JOIN_VMS:
    ljp_serve_vms(serve, m);
    return true;
  case LJP_JOIN_HEAP:
    ljp_serve_heap(serve, m);
    return true;
  case LJP_JOIN_SEGMENT:
    if (serve->records)
      ljp_segments_give(m->number[0], m->fd[--m->fds]);
    return true;
  case LJP_JOIN_PROC:
    if (serve->own)
      ljp_own_proc_lend(m->fd[0]);
    return true;
  case LJP_JOIN_BYE:
    return false;
  default:
    serve_refuse(serve, m->serial, "this message was not expected");
    return false;
  }
}
