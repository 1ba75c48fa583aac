/*
** The life cycle of the memory profiler: start, stop, and whatever may end a
** session in between (lua_close, exit, another allocator). See memprof.h.
**
** Invariants: there is one lock. The writer's rounds only try it, because stop
** holds it while it waits for the writer; a VM's collector only tries it,
** because it can come back later.
*/
#include "profilers/memory/memprof.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profilers/memory/followed.h"
#include "profilers/memory/heap_session.h"
#include "profilers/memory/state.h"
#include "profilers/session/host.h"
#include "profilers/session/shared.h"
#include "profilers/session/side_run.h"
#include "profilers/session/stopper.h"
#include "src/base/assert.h"
#include "src/base/clock.h"
#include "src/base/futex.h"
#include "src/base/copy.h"
#include "src/base/saferead.h"
#include "src/base/shown.h"
#include "src/luajit/heap.h"
#include "src/luajit/snapshot.h"
#include "src/luajit/stubs.h"
#include "src/luajit/traces.h"
#include "src/luajit/vms.h"
#include "src/push/event.h"

struct ljp_memprof ljp_memprof = {.lock =
                                      LJP_PROFILER_LOCK_INIT(ljp_copy_notice)};
static struct ljp_memprof *const g = &ljp_memprof;

static void memprof_lock(void)
{
  ljp_profiler_lock(&g->lock);
}

static void memprof_unlock(void)
{
  ljp_profiler_unlock(&g->lock);
}

/* -- Meanwhile ------------------------------------------------------------- */
#define REPLACED                                                               \
  "the program has replaced its allocator: later events are not recorded"

static void memprof_note_replaced(struct ljp_recorder *r)
{
  char text[sizeof REPLACED + 32];
  snprintf(text, sizeof text, "VM %u: " REPLACED, r->number);
  ljp_push_note(g->events, ljp_clock_ns(), LJP_NOTE_ERROR, text);
  r->replaced = g->replaced = true;
}

static enum ljp_status memprof_replaced_here(void *recorder, const void *unused,
                                             struct ljp_failure *why)
{
  struct ljp_recorder *r = recorder;
  (void)unused;
  (void)why;
  if (g->running && atomic_load(&r->on)) {
    ljp_recorder_leave_place(r);
    memprof_note_replaced(r);
  }
  return LJP_OK;
}

/* An allocator is about to be replaced. If that is by us, under the lock, the
** recorder is not in place yet, or not on any more. */
static void memprof_on_allocator(struct lua_State *L)
{
  struct ljp_recorder *r = ljp_guest_recorder(L);
  if (!r || !atomic_load(&r->on) || !ljp_recorder_in_place(r))
    return;
  memprof_lock();
  ljp_side_run(memprof_replaced_here, r, NULL, NULL);
  memprof_unlock();
}

static void memprof_round(void *ctx)
{
  (void)ctx;
  if (!ljp_profiler_trylock(&g->lock))
    return; /* the session is just starting or stopping */
  if (g->running) {
    ljp_host_poll_tables();
    ljp_saferead_check();
  }
  memprof_unlock();
}

/* Called when many freed functions wait for the writer. */
static void memprof_on_crowded(void)
{
  ljp_output_wake_writer(&g->lock, &g->running, &g->session);
}

static void memprof_expire(const struct ljp_stopper *itself);

/* Starts the stopper, if the time of a session of our own is limited. Returns an
** errno. */
static int memprof_limit(void)
{
  uint64_t until_ns = g->options.output.until_ns;
  return until_ns && !g->options.shared
             ? ljp_stopper_start(&g->stopper, until_ns, memprof_expire)
             : 0;
}

static void memprof_forked(void *ctx, bool recording)
{
  (void)ctx;
  ljp_profiler_lock_forked(&g->lock);
  ljp_host_forked();
  atomic_store(&g->closing, false);
  if (!recording)
    ljp_guest_stubs_take();
  if (g->running) {
    ljp_followed_forked(recording);
    ljp_stopper_forked(&g->stopper);
    if (recording) {
      ljp_guest_protos_ready(&g->hold);
      ljp_stopper_missing(g->session, memprof_limit());
    } else {
      g->running = false;
      ljp_show_session(LJP_SHOWN_MEMORY, false, 0);
    }
  }
  if (!recording) {
    /* Another thread may have been beginning or ending the session. */
    ljp_guest_protos_release(&g->hold);
    ljp_guest_traces_release(&g->holds_traces);
  }
  memprof_unlock();
}

static void memprof_shared_forked(bool recording)
{
  if (g->options.shared)
    memprof_forked(NULL, recording);
}

static bool memprof_records_shared(void)
{
  memprof_lock();
  bool records = g->running && g->options.shared;
  memprof_unlock();
  return records;
}

/* On the thread of our stopper. */
static void memprof_expire(const struct ljp_stopper *itself)
{
  struct ljp_failure why;
  ljp_heap_session_expire();
  memprof_lock();
  if (g->running && g->stopper == itself)
    ljp_memprof_stop_locked(NULL, &why);
  memprof_unlock();
}

/* On the thread of the stopper of a shared session's owner. */
static void memprof_shared_expire(void)
{
  struct ljp_failure why;
  ljp_heap_session_expire();
  memprof_lock();
  if (g->running && g->options.shared && ljp_output_over(&g->options.output))
    ljp_memprof_stop_locked(NULL, &why);
  memprof_unlock();
}

static const struct ljp_participant memprof_participant = {
    .forked = memprof_shared_forked,
    .records = memprof_records_shared,
    .expire = memprof_shared_expire};

/* Not inlined: its callers also take the last heap snapshot, and the stack may be
** small. */
__attribute__((noinline)) static void memprof_end_locked(struct lua_State *L,
                                                         const char *end)
{
  struct ljp_failure why;
  g->options.output.end = end;
  ljp_memprof_stop_locked(L, &why);
}

/* lua_close() begins. */
static void memprof_on_closing(struct lua_State *L)
{
  ljp_heap_session_last(L, NULL);
  memprof_lock();
  if (g->running && g->owner && ljp_guest_vm_id(L) == g->owner)
    memprof_end_locked(L, LJP_END_CLOSE);
  memprof_unlock();
}

/* When no session runs, and no recorder is left to be removed, nobody need call
** us any more. */
static void memprof_listen(void);

static void memprof_on_gone(struct lua_State *L)
{
  int *error = &errno, saved = *error;
  memprof_lock();
  ljp_followed_gone(L);
  if (ljp_guest_vm_id(L) == g->snapshot_vm)
    g->snapshot_main = NULL;
  memprof_listen();
  memprof_unlock();
  *error = saved;
}

static enum ljp_status memprof_meet_here(void *L, const void *unused,
                                         struct ljp_failure *why)
{
  uint32_t id;
  (void)unused;
  (void)why;
  ljp_followed_clear(L);
  if (g->running && g->options.all)
    ljp_followed_add(L);
  if (g->running && !g->options.shared)
    ljp_followed_define(ljp_guest_vm_id(L), &id);
  memprof_listen();
  memprof_unlock();
  return LJP_OK;
}

void ljp_memprof_meet_locked(struct lua_State *L)
{
  int *error = &errno, saved = *error;
  ljp_side_run(memprof_meet_here, L, NULL, NULL);
  *error = saved;
}

/* A new VM, before it runs anything. */
static void memprof_on_created(struct lua_State *L)
{
  memprof_lock();
  ljp_memprof_meet_locked(L);
}

void ljp_memprof_meet(struct lua_State *L)
{
  if (LJP_LIKELY(!atomic_load_explicit(&g->meets, memory_order_relaxed)))
    return;
  memprof_lock();
  ljp_memprof_meet_locked(L);
}

/* On a VM's own thread, inside its collector. */
static void memprof_on_phase(struct lua_State *L)
{
  struct ljp_recorder *r = ljp_guest_recorder(L);
  if (r && r->number == g->snapshot_vm && g->snapshot_home != &errno)
    atomic_store_explicit(&g->snapshot_moved, true, memory_order_relaxed);
  if (LJP_UNLIKELY(
          r && atomic_load_explicit(&g->snapshot_due_ns, memory_order_relaxed)))
    ljp_heap_session_phase(L);
  if (r && !r->ended)
    ljp_recorder_phase(r);
  else if (atomic_load_explicit(&g->meets, memory_order_relaxed) &&
           atomic_load(&g->lock.pid) == getpid() &&
           ljp_profiler_trylock(&g->lock)) /* else at the next phase */
    ljp_memprof_meet_locked(L);
}

static void memprof_listen(void)
{
  static const struct ljp_guest_listener listener = {
      .created = memprof_on_created,
      .allocator = memprof_on_allocator,
      .closing = memprof_on_closing,
      .gone = memprof_on_gone};
  uint32_t lingering = ljp_followed_lingering();
  bool listen = g->running || lingering;
  atomic_store(&g->meets, lingering || (g->running && g->options.all));
  ljp_guest_listen(LJP_LISTENER_MEM, listen ? &listener : NULL);
  ljp_guest_listen_gc(listen ? memprof_on_phase : NULL);
  if (!atomic_load(&g->meets))
    ljp_guest_stubs_ignore();
}

/* Two seconds at most, as for the lock. */
static void memprof_await_closing(void)
{
  enum { TURNS = 2000, TURN_NS = 1000000 };
  _Atomic uint32_t never = 0;
  for (int i = 0; i < TURNS && atomic_load(&g->closing); i++)
    ljp_futex_wait(&never, 0, TURN_NS);
}

/* exit() without lua_close(). Runs before the destructor of the CPU profiler,
** whose session this may share. */
__attribute__((destructor)) static void memprof_at_exit(void)
{
  ljp_heap_session_exit();
  memprof_await_closing();
  if (!ljp_profiler_lock_at_exit(&g->lock))
    return;
  if (g->running)
    memprof_end_locked(NULL, LJP_END_EXIT);
  memprof_unlock();
}

/* -- Start ----------------------------------------------------------------- */
static enum ljp_status memprof_open_session(struct ljp_failure *why)
{
  ljp_guest_protos_hold(&g->hold, memprof_on_crowded);
  enum ljp_status status =
      ljp_output_new(&g->options.output, memprof_round, memprof_forked,
                     &g->hold, &g->session, why);
  if (!status)
    status = ljp_output_start(&g->options.output, &g->session, why);
  if (status)
    ljp_guest_protos_release(&g->hold);
  else
    ljp_guest_protos_ready(&g->hold);
  return status;
}

static enum ljp_status memprof_join_session(struct ljp_failure *why)
{
  g->session = ljp_shared_session();
  if (!g->session)
    return ljp_fail(why, LJP_ERR_RUN, EINVAL,
                    "the session to share has ended already");
  ljp_shared_join(&memprof_participant);
  return LJP_OK;
}

static enum ljp_status memprof_follow(struct lua_State *L)
{
  const struct ljp_memprof_options *o = &g->options;
  const struct ljp_follow how = {.session = g->session,
                                 .sample_bytes = o->sample_bytes,
                                 .max_samples = o->max_samples,
                                 .told_at_once = o->snapshot,
                                 .native = o->native,
                                 .shared = o->shared,
                                 .depth = o->depth};
  ljp_followed_begin(&how);
  enum ljp_status status = ljp_session_add_producer(
      g->session, LJP_PRODUCER_EVENTS, 0, 0, 0, &g->events);
  return status || !L ? status : ljp_followed_add(L);
}

/* The output may be slow. The program has not asked for the session of a client,
** so its threads that make or close VMs must not wait for that. */
static enum ljp_status memprof_close_session(struct ljp_failure *why)
{
  enum ljp_status status = LJP_OK;
  struct ljp_session *session = g->session;
  uint64_t bytes = 0;
  const bool joined = g->options.client && !g->options.shared;
  if (joined) {
    atomic_store(&g->closing, true);
    memprof_unlock();
  }
  if (!g->options.shared) {
    status =
        ljp_output_stop(&g->options.output, &g->hold, &session, &bytes, why);
    ljp_guest_protos_release(&g->hold);
  }
  if (joined) {
    memprof_lock();
    atomic_store(&g->closing, false);
  }
  g->session = NULL;
  g->bytes = bytes;
  return status;
}

static enum ljp_status memprof_begin(struct lua_State *L,
                                     struct ljp_failure *why)
{
  struct ljp_failure ignored;
  enum ljp_status status =
      g->options.shared ? memprof_join_session(why) : memprof_open_session(why);
  if (status)
    return status;
  int error = memprof_limit();
  status = error ? LJP_ERR_MEM : memprof_follow(L);
  if (error)
    ljp_stopper_refused(why, error);
  else if (status)
    ljp_output_refused(&g->options.output, g->session, status, why);
  else if (!g->options.shared)
    status = ljp_output_commit(&g->options.output, g->session, why);
  if (status) {
    ljp_stopper_end(&g->stopper);
    g->options.output.on_stop = NULL;
    ljp_followed_stop(L); /* otherwise it would read a freed producer */
    memprof_close_session(&ignored);
  }
  return status;
}

static enum ljp_status memprof_start_here(void *L, const void *wanted,
                                          struct ljp_failure *why)
{
  const struct ljp_memprof_options *options = wanted;
  if (g->running || atomic_load(&g->closing))
    return ljp_memprof_busy(why);
  g->options = *options;
  enum ljp_status status =
      ljp_output_keep_path(&g->options.output, g->path, why);
  if (status)
    return status;
  g->session_number++;
  g->owner = g->snapshot_vm = L ? ljp_guest_vm_id(L) : 0;
  g->snapshot_main = L ? ljp_guest_main(L) : NULL;
  g->snapshot_home = &errno;
  atomic_store(&g->snapshot_moved, false);
  atomic_store(&g->snapshot_due_ns, 0);
  g->replaced = g->failed = g->unwritten = false;
  g->bytes = 0;
  memset(&g->counts, 0, sizeof g->counts);
  status = ljp_host_prepare(why);
  if (status)
    return status;
  status = memprof_begin(L, why);
  if (status) {
    ljp_host_release();
    return status;
  }
  ljp_memprof_info(g->session, &g->options);
  if (g->options.snapshot_ns)
    g->snapshot_due_ns = ljp_clock_ns() + g->options.snapshot_ns;
  ljp_guest_traces_hold(&g->holds_traces);
  g->ever = g->running = true;
  ljp_show_session(LJP_SHOWN_MEMORY, true, g->options.client);
  memprof_listen();
  if (!options->shared)
    ljp_followed_define_all();
  if (options->client)
    ljp_memprof_reach_vms();
  return LJP_OK;
}

/* -- Stop ------------------------------------------------------------------ */
static enum ljp_status memprof_stop_here(void *L, const void *unused,
                                         struct ljp_failure *why)
{
  (void)unused;
  uint64_t heap_bytes;
  ljp_assert(g->running && g->session);
  ljp_stopper_end(&g->stopper);
  bool stuck = !ljp_followed_stop(L);
  ljp_followed_counts(&g->counts, &heap_bytes);
  g->running = false;
  ljp_show_session(LJP_SHOWN_MEMORY, false, 0);
  atomic_store(&g->snapshot_due_ns, 0);
  memprof_listen();
  if (g->options.client)
    ljp_memprof_reach_vms();
  ljp_producer_retire(g->events);
  enum ljp_status status = memprof_close_session(why);
  ljp_guest_traces_release(&g->holds_traces);
  if (!stuck)
    ljp_host_release();
  g->unwritten = status != LJP_OK;
  g->failed = status || g->replaced;
  if (!status && g->replaced && !g->options.client)
    return ljp_fail(why, LJP_ERR_RUN, ECANCELED, REPLACED);
  return status ? status
                : ljp_output_lost(&g->options.output, g->counts.untold, why);
}

enum ljp_status ljp_memprof_stop_locked(struct lua_State *L,
                                        struct ljp_failure *why)
{
  enum ljp_status status = ljp_side_run(memprof_stop_here, L, NULL, why);
  ljp_output_ended(&g->options.output, &g->lock);
  return status;
}

enum ljp_status ljp_memprof_start(struct lua_State *L,
                                  const struct ljp_memprof_options *options,
                                  struct ljp_failure *why)
{
  memprof_lock();
  enum ljp_status status = ljp_side_run(memprof_start_here, L, options, why);
  memprof_unlock();
  return status;
}
