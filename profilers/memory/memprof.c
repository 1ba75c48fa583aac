/*
** The life cycle of the memory profiler: start, stop, and whatever may end a
** session in between (lua_close, exit, another allocator). See memprof.h.
**
** Invariants: there is one lock. The recorder belongs to the VM's thread.
** Another thread that ends a session only switches the recorder off; the
** recorder then passes every call on, and stays. The writer's rounds only try
** the lock, because stop holds it while it waits for the writer.
*/
#include "profilers/memory/memprof.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profilers/memory/record.h"
#include "profilers/session/host.h"
#include "profilers/session/shared.h"
#include "profilers/session/vms.h"
#include "src/base/assert.h"
#include "src/base/clock.h"
#include "src/base/saferead.h"
#include "src/luajit/heap.h"
#include "src/luajit/traces.h"
#include "src/luajit/vms.h"
#include "src/push/event.h"

enum {
  RING_BYTES = 4 << 20,
  IDLE = 16 /* recorders */
};

static struct {
  struct ljp_profiler_lock lock;
  bool running, ever, failed;
  bool replaced;   /* the program has put another allocator on top */
  uint32_t number; /* of the VM */
  struct ljp_memprof_options options;
  char path[LJP_OUTPUT_PATH_BYTES];
  struct ljp_session *session;
  struct ljp_guest_hold hold;  /* of a session of our own */
  struct ljp_producer *events; /* for events outside of the VM's thread */
  struct ljp_recorder *_Atomic recorder;
  struct ljp_memprof_counts counts; /* of the last session */
  uint64_t bytes;
  struct ljp_recorder *left; /* recorders below other allocators, for good */
  struct ljp_recorder *idle; /* recorders for later sessions; latest first */
} memprof = {.lock = LJP_PROFILER_LOCK_INIT(ljp_session_notice_copy)};
#define g (&memprof)

static void memprof_lock(void)
{
  ljp_profiler_lock(&g->lock);
}

static void memprof_unlock(void)
{
  ljp_profiler_unlock(&g->lock);
}

void ljp_memprof_options_init(struct ljp_memprof_options *o)
{
  memset(o, 0, sizeof *o);
  o->sample_bytes = LJP_MEMPROF_SAMPLE_BYTES;
  o->depth = LJP_STACK_MAX_FRAMES;
}

/* -- Meanwhile ------------------------------------------------------------- */
#define REPLACED                                                               \
  "the program has replaced its allocator: later events are not recorded"

static void memprof_note_replaced(void)
{
  if (!g->replaced)
    ljp_push_note(g->events, ljp_clock_ns(), LJP_NOTE_ERROR, REPLACED);
  g->replaced = true;
}

static void memprof_check_allocator(void)
{
  if (g->replaced || ljp_recorder_in_place(g->recorder))
    return;
  ljp_recorder_switch_off(g->recorder);
  memprof_note_replaced();
}

static void memprof_round(void *ctx)
{
  (void)ctx;
  if (!ljp_profiler_trylock(&g->lock))
    return; /* the session is just starting or stopping */
  if (g->running && g->lock.pid == getpid()) {
    ljp_host_poll_tables();
    ljp_saferead_check();
    memprof_check_allocator();
  }
  memprof_unlock();
}

/* Called when many freed functions wait for the writer. */
static void memprof_on_crowded(void)
{
  ljp_output_wake_writer(&g->lock, &g->running, &g->session);
}

static void memprof_shared_round(void)
{
  if (!ljp_profiler_trylock(&g->lock))
    return;
  if (g->running && g->options.shared && g->lock.pid == getpid())
    memprof_check_allocator();
  memprof_unlock();
}

static void memprof_forked(void *ctx, bool recording)
{
  (void)ctx;
  ljp_profiler_lock_forked(&g->lock);
  ljp_host_forked();
  if (!g->running)
    return;
  if (recording) {
    ljp_guest_protos_ready(&g->hold);
    ljp_recorder_forked(g->recorder);
    return;
  }
  /* From now on the recorder only passes calls on. It must not ask its producer,
  ** which goes with the session when the child starts another one. */
  ljp_recorder_switch_off(g->recorder);
  g->running = false;
  ljp_guest_protos_release(&g->hold);
  ljp_guest_traces_release();
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

static const struct ljp_participant memprof_participant = {
    .round = memprof_shared_round,
    .forked = memprof_shared_forked,
    .records = memprof_records_shared};

static enum ljp_status memprof_stop_locked(struct ljp_failure *why);

/* lua_close(), on the VM's own thread. */
static void memprof_on_closing(struct lua_State *L)
{
  struct ljp_failure why;
  memprof_lock();
  if (g->running && ljp_guest_vm_id(L) == g->number)
    memprof_stop_locked(&why);
  memprof_unlock();
}

static const struct ljp_guest_listener memprof_listener = {
    .closing = memprof_on_closing};

/* On a VM's own thread, inside its collector. That VM's recorder cannot end
** meanwhile: ending it takes the same thread. */
static void memprof_on_phase(uint32_t vm, enum ljp_gc_phase phase,
                             uint64_t heap_bytes)
{
  struct ljp_recorder *r = atomic_load(&g->recorder);
  (void)phase;
  (void)heap_bytes;
  if (r && vm == r->number)
    ljp_recorder_phase(r);
}

/* exit() without lua_close(). Runs before the destructor of the CPU profiler,
** whose session this may share. */
__attribute__((destructor)) static void memprof_at_exit(void)
{
  struct ljp_failure why;
  if (!ljp_profiler_lock_at_exit(&g->lock))
    return;
  if (g->running)
    memprof_stop_locked(&why);
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

static void memprof_info_options(void)
{
  const struct ljp_memprof_options *o = &g->options;
  char text[32] = "every event";
  if (o->sample_bytes)
    snprintf(text, sizeof text, "%llu", (unsigned long long)o->sample_bytes);
  ljp_session_info(g->session, "option.memory.sample_bytes", text);
  ljp_session_info(g->session, "option.memory.native",
                   o->native ? "true" : "false");
}

/* A host may have kept a session's allocator (lua_getallocf) and may still call
** it. So its recorder stays and passes calls on, until there are IDLE later
** ones. A later session may take it over if it is of the same kind and on the
** same allocator. */
static struct ljp_recorder *memprof_take_idle(struct lua_State *L)
{
  void *ud;
  lua_Alloc alloc = lua_getallocf(L, &ud);
  struct ljp_recorder **at = &g->idle, *r;
  while ((r = *at) != NULL && (r->alloc != alloc || r->ud != ud ||
                               r->every != (g->options.sample_bytes == 0)))
    at = &r->left;
  if (r) {
    *at = r->left;
    ljp_recorder_reset(r);
  }
  return r;
}

static void memprof_give_back(struct ljp_recorder *r)
{
  struct ljp_recorder **at = &g->idle;
  if (r->fixed || !r->alloc) { /* no host can have kept it */
    free(r);
    return;
  }
  r->left = g->idle;
  g->idle = r;
  for (int i = 0; *at && i < IDLE; i++)
    at = &(*at)->left;
  free(*at);
  *at = NULL;
}

/* Makes g->recorder, ready to begin. */
static enum ljp_status memprof_make_recorder(struct lua_State *L)
{
  struct ljp_recorder *r = memprof_take_idle(L);
  char name[24];
  if (!r) {
    r = aligned_alloc(_Alignof(struct ljp_recorder), sizeof *r);
    if (!r)
      return LJP_ERR_MEM;
    memset(r, 0, sizeof *r);
  }
  g->recorder = r;
  r->number = g->number;
  if (!ljp_guest_heap(L, &r->heap))
    return LJP_ERR_NOTSUP;
  r->stacks.heap = &r->heap;
  r->stacks.native = g->options.native;
  r->stacks.depth = g->options.depth;
  r->stacks.unwind = ljp_host_tables();
  r->sample_bytes = g->options.sample_bytes;
  r->here.random = ljp_clock_ns() * 2 + 1;
  if (!ljp_stacks_init(&r->stacks))
    return LJP_ERR_MEM;
  r->vm = g->options.shared ? ljp_vms_id(g->number) : 0;
  snprintf(name, sizeof name, "VM %u", g->number);
  enum ljp_status status =
      r->vm ? LJP_OK : ljp_session_add_vm(g->session, 0, name, &r->vm);
  if (!status)
    status =
        ljp_session_add_producer(g->session, LJP_PRODUCER_MEMORY, 0,
                                 r->sample_bytes, RING_BYTES, &r->producer);
  if (!status)
    atomic_store(&r->active, ljp_producer_active_flag(r->producer));
  if (!status)
    status = ljp_session_add_producer(g->session, LJP_PRODUCER_EVENTS, 0, 0, 0,
                                      &g->events);
  return status;
}

static enum ljp_status memprof_close_session(struct ljp_failure *why)
{
  enum ljp_status status = LJP_OK;
  if (!g->options.shared) {
    status = ljp_output_stop(&g->options.output, &g->hold, &g->session,
                             &g->bytes, why);
    ljp_guest_protos_release(&g->hold);
  }
  g->session = NULL;
  return status;
}

static enum ljp_status
memprof_start_locked(struct lua_State *L,
                     const struct ljp_memprof_options *options,
                     struct ljp_failure *why)
{
  struct ljp_failure ignored;
  if (g->running)
    return ljp_fail(why, LJP_ERR_RUN, EBUSY,
                    "memory profiler is running already");
  g->options = *options;
  enum ljp_status status =
      ljp_output_keep_path(&g->options.output, g->path, why);
  if (status)
    return status;
  g->number = ljp_guest_vm_id(L);
  g->replaced = g->failed = false;
  g->bytes = 0;
  memset(&g->counts, 0, sizeof g->counts);
  status = ljp_host_prepare(why);
  if (status)
    return status;
  if (options->shared)
    status = memprof_join_session(why);
  else
    status = memprof_open_session(why);
  if (!status) {
    status = memprof_make_recorder(L);
    if (status)
      ljp_fail(why, status, ljp_status_errno(status), "%s",
               ljp_status_text(status));
    else if (!options->shared)
      status = ljp_output_commit(&g->options.output, g->session, why);
    if (status) {
      g->options.output.on_stop = NULL;
      if (g->recorder) /* Otherwise it would read a freed producer. */
        ljp_recorder_switch_off(g->recorder);
      memprof_close_session(&ignored);
      if (g->recorder) {
        ljp_stacks_fini(&g->recorder->stacks);
        memprof_give_back(g->recorder);
      }
      g->recorder = NULL;
    }
  }
  if (status) {
    ljp_host_release();
    return status;
  }
  memprof_info_options();
  ljp_guest_traces_hold();
  g->ever = g->running = true;
  ljp_guest_listen(LJP_LISTENER_MEM, &memprof_listener);
  ljp_recorder_begin(g->recorder);
  ljp_guest_listen_gc(memprof_on_phase);
  return LJP_OK;
}

/* -- Stop ------------------------------------------------------------------ */
static enum ljp_status memprof_stop_locked(struct ljp_failure *why)
{
  struct ljp_recorder *r = g->recorder;
  ljp_assert(g->running && r && g->session);
  ljp_guest_listen(LJP_LISTENER_MEM, NULL);
  ljp_guest_listen_gc(NULL);
  bool gone = ljp_recorder_end(r);
  if (!gone)
    memprof_note_replaced();
  g->counts = r->counts;
  g->running = false;
  ljp_stacks_fini(&r->stacks);
  ljp_producer_retire(r->producer);
  ljp_producer_retire(g->events);
  r->producer = NULL;
  enum ljp_status status = memprof_close_session(why);
  ljp_guest_traces_release();
  ljp_host_release();
  g->recorder = NULL;
  /* Below another allocator it has to pass calls on for good. */
  if (gone) {
    memprof_give_back(r);
  } else {
    r->left = g->left;
    g->left = r;
  }
  g->failed = status || g->replaced;
  ljp_output_ended(&g->options.output, &g->lock);
  if (status)
    return status;
  if (g->replaced)
    return ljp_fail(why, LJP_ERR_RUN, ECANCELED, REPLACED);
  return LJP_OK;
}

enum ljp_status ljp_memprof_start(struct lua_State *L,
                                  const struct ljp_memprof_options *options,
                                  struct ljp_failure *why)
{
  memprof_lock();
  enum ljp_status status = memprof_start_locked(L, options, why);
  memprof_unlock();
  return status;
}

enum ljp_status ljp_memprof_stop(struct lua_State *L, struct ljp_failure *why)
{
  enum ljp_status status;
  memprof_lock();
  if (!g->running)
    status =
        ljp_fail(why, LJP_ERR_RUN, EINVAL, "memory profiler is not running");
  else if (ljp_guest_vm_id(L) != g->number)
    status = ljp_fail(
        why, LJP_ERR_USE, EPERM,
        "memory profiler was started by another VM (number %u); only that VM "
        "can stop it",
        g->number);
  else
    status = memprof_stop_locked(why);
  memprof_unlock();
  return status;
}

enum ljp_status ljp_memprof_mark(struct lua_State *L, const char *name,
                                 size_t bytes, struct ljp_failure *why)
{
  enum ljp_status status = LJP_OK;
  memprof_lock();
  if (!g->running) {
    status =
        ljp_fail(why, LJP_ERR_RUN, EINVAL, "memory profiler is not running");
  } else if (ljp_guest_vm_id(L) != g->number) {
    status = ljp_fail(why, LJP_ERR_USE, EPERM,
                      "memory profiler was started by another VM "
                      "(number %u); only that VM can set marks",
                      g->number);
  } else {
    ljp_recorder_mark(g->recorder, name, bytes);
  }
  memprof_unlock();
  return status;
}

void ljp_memprof_status(struct ljp_memprof_status *out)
{
  memset(out, 0, sizeof *out);
  memprof_lock();
  out->state = g->running ? "running" : !g->ever ? "idle" : "stopped";
  out->running = g->running;
  out->counts = g->counts;
  out->bytes = g->bytes;
  if (g->running) {
    ljp_recorder_count(g->recorder);
    out->counts = g->recorder->counts;
    out->bytes = ljp_session_bytes(g->session);
    out->heap_bytes = ljp_guest_heap_bytes(&g->recorder->heap);
  }
  if (g->failed || g->replaced ||
      (g->running && ljp_session_state(g->session) != LJP_SESSION_RUNNING))
    out->state = "failed";
  out->sample_bytes = g->options.sample_bytes;
  out->native = g->options.native;
  snprintf(out->path, sizeof out->path, "%s", g->path);
  memprof_unlock();
}
