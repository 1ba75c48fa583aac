/*
** Life cycle of the memory profiler: start, stop, and what may end it in
** between (lua_close, exit, another allocator). See memprof.h.
**
** Invariants: one lock. The recorder belongs to the VM's thread; whoever else
** ends a recording only switches it off (it then passes on, and stays). The
** writer's rounds only try the lock, since stop waits for the writer under it.
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
  bool replaced;   /* somebody has put another allocator on top */
  uint32_t number; /* of the VM */
  struct ljp_memprof_options options;
  char path[LJP_OUTPUT_PATH_BYTES];
  struct ljp_session *session;
  struct ljp_guest_hold hold;  /* unless the session is shared */
  struct ljp_producer *events; /* for what is told outside the VM's thread */
  struct ljp_recorder *_Atomic recorder;
  struct ljp_memprof_counts counts; /* of the last recording */
  uint64_t bytes;
  struct ljp_recorder *left; /* under others' allocators, for good */
  struct ljp_recorder *idle; /* the last that were given back first */
} memprof = {.lock = LJP_PROFILER_LOCK_INIT};
#define g (&memprof)

static void lock(void)
{
  ljp_profiler_lock(&g->lock);
}

static void unlock(void)
{
  ljp_profiler_unlock(&g->lock);
}

void ljp_memprof_options_init(struct ljp_memprof_options *o)
{
  memset(o, 0, sizeof *o);
  o->sample_bytes = LJP_MEMPROF_SAMPLE_BYTES;
  o->depth = LJP_STACK_MAX_FRAMES;
}

/* -- Meanwhile ------------------------------------------------------------------- */

#define REPLACED                                                               \
  "the program has replaced its allocator: what came after is not recorded"

static void note_replaced(void)
{
  if (!g->replaced)
    ljp_push_note(g->events, ljp_clock_ns(), LJP_NOTE_ERROR, REPLACED);
  g->replaced = true;
}

static void look_at_allocator(void)
{
  if (g->replaced || ljp_recorder_in_place(g->recorder))
    return;
  ljp_recorder_rest(g->recorder);
  note_replaced();
}

static void writer_round(void *ctx)
{
  (void)ctx;
  if (!ljp_profiler_trylock(&g->lock))
    return; /* it starts or stops just now */
  if (g->running && g->lock.pid == getpid()) {
    ljp_host_poll_tables();
    ljp_saferead_check();
    look_at_allocator();
  }
  unlock();
}

static void on_crowded(void)
{
  ljp_output_wake_writer(&g->lock, &g->running, &g->session);
}

static void shared_round(void)
{
  if (!ljp_profiler_trylock(&g->lock))
    return;
  if (g->running && g->options.shared && g->lock.pid == getpid())
    look_at_allocator();
  unlock();
}

static void fork_child(void *ctx, bool recording)
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
  g->running = false; /* the recorder finds its producer inactive */
  ljp_guest_protos_release(&g->hold);
  ljp_guest_traces_release();
}

static void shared_forked(bool recording)
{
  if (g->options.shared)
    fork_child(NULL, recording);
}

static bool records_shared(void)
{
  lock();
  bool records = g->running && g->options.shared;
  unlock();
  return records;
}

static const struct ljp_participant participant = {
    .round = shared_round, .forked = shared_forked, .records = records_shared};

static enum ljp_status stop_locked(struct ljp_failure *why);

/* lua_close(), on the VM's own thread. */
static void on_closing(struct lua_State *L)
{
  struct ljp_failure why;
  lock();
  if (g->running && ljp_guest_vm_id(L) == g->number)
    stop_locked(&why);
  unlock();
}

static const struct ljp_guest_listener listener = {.closing = on_closing};

/* On a VM's own thread, in its collector. The recorder of that VM cannot end
** meanwhile: whoever ends it needs the same thread. */
static void on_phase(uint32_t vm, enum ljp_gc_phase phase, uint64_t heap_bytes)
{
  struct ljp_recorder *r = atomic_load(&g->recorder);
  (void)phase;
  (void)heap_bytes;
  if (r && vm == r->number)
    ljp_recorder_phase(r);
}

/* exit() without lua_close(). Before the CPU profiler's. */
__attribute__((destructor)) static void at_exit(void)
{
  struct ljp_failure why;
  if (!ljp_profiler_lock_at_exit(&g->lock))
    return;
  if (g->running)
    stop_locked(&why);
  unlock();
}

/* -- Start -------------------------------------------------------------------------- */

static enum ljp_status open_session(struct ljp_failure *why)
{
  ljp_guest_protos_hold(&g->hold, on_crowded);
  enum ljp_status status = ljp_output_new(
      &g->options.output, writer_round, fork_child, &g->hold, &g->session, why);
  if (!status)
    status = ljp_output_start(&g->options.output, &g->session, why);
  if (status)
    ljp_guest_protos_release(&g->hold);
  else
    ljp_guest_protos_ready(&g->hold);
  return status;
}

static enum ljp_status join_session(struct ljp_failure *why)
{
  g->session = ljp_shared_session();
  if (!g->session)
    return ljp_fail(why, LJP_ERR_RUN, EINVAL,
                    "the session to share has ended already");
  ljp_shared_join(&participant);
  return LJP_OK;
}

static void put_options(void)
{
  const struct ljp_memprof_options *o = &g->options;
  char text[32] = "every event";
  if (o->sample_bytes)
    snprintf(text, sizeof text, "%llu", (unsigned long long)o->sample_bytes);
  ljp_session_info(g->session, "option.memory.sample_bytes", text);
  ljp_session_info(g->session, "option.memory.native",
                   o->native ? "true" : "false");
}

/* A host may have kept the allocator of a session (lua_getallocf), and go on to
** call it: its recorder stays, and passes on, until there are IDLE others. It may
** only become one of the same kind of session, on the same allocator. */
static struct ljp_recorder *take_idle(struct lua_State *L)
{
  void *ud;
  lua_Alloc alloc = lua_getallocf(L, &ud);
  struct ljp_recorder **at = &g->idle, *r;
  while ((r = *at) != NULL && (r->alloc != alloc || r->ud != ud ||
                               r->every != (g->options.sample_bytes == 0)))
    at = &r->left;
  if (r) {
    *at = r->left;
    ljp_recorder_renew(r);
  }
  return r;
}

static void give_back(struct ljp_recorder *r)
{
  struct ljp_recorder **at = &g->idle;
  if (r->fixed || !r->alloc) { /* nobody has it */
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

/* The recorder, ready to begin. */
static enum ljp_status make_recorder(struct lua_State *L)
{
  struct ljp_recorder *r = take_idle(L);
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

static enum ljp_status close_session(struct ljp_failure *why)
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

static enum ljp_status start_locked(struct lua_State *L,
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
    status = join_session(why);
  else
    status = open_session(why);
  if (!status) {
    status = make_recorder(L);
    if (status) {
      ljp_fail(why, status, ljp_status_errno(status), "%s",
               ljp_status_text(status));
      g->options.output.on_stop = NULL;
      close_session(&ignored);
      if (g->recorder) {
        ljp_stacks_fini(&g->recorder->stacks);
        give_back(g->recorder);
      }
      g->recorder = NULL;
    }
  }
  if (status) {
    ljp_host_release();
    return status;
  }
  put_options();
  ljp_guest_traces_hold();
  g->ever = g->running = true;
  ljp_guest_listen(LJP_LISTENER_MEM, &listener);
  ljp_recorder_begin(g->recorder);
  ljp_guest_listen_gc(on_phase);
  return LJP_OK;
}

/* -- Stop ---------------------------------------------------------------------------- */

static enum ljp_status stop_locked(struct ljp_failure *why)
{
  struct ljp_recorder *r = g->recorder;
  ljp_guest_listen(LJP_LISTENER_MEM, NULL);
  ljp_guest_listen_gc(NULL);
  bool gone = ljp_recorder_end(r);
  if (!gone)
    note_replaced();
  g->counts = r->counts;
  g->running = false;
  ljp_stacks_fini(&r->stacks);
  ljp_producer_retire(r->producer);
  ljp_producer_retire(g->events);
  r->producer = NULL;
  enum ljp_status status = close_session(why);
  ljp_guest_traces_release();
  ljp_host_release();
  g->recorder = NULL;
  /* Under somebody else's allocator it goes on passing on. */
  if (gone) {
    give_back(r);
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
  lock();
  enum ljp_status status = start_locked(L, options, why);
  unlock();
  return status;
}

enum ljp_status ljp_memprof_stop(struct lua_State *L, struct ljp_failure *why)
{
  enum ljp_status status;
  lock();
  if (!g->running)
    status =
        ljp_fail(why, LJP_ERR_RUN, EINVAL, "memory profiler is not running");
  else if (ljp_guest_vm_id(L) != g->number)
    status = ljp_fail(
        why, LJP_ERR_USE, EPERM,
        "memory profiler was started by another VM (number %u), which alone "
        "can stop it",
        g->number);
  else
    status = stop_locked(why);
  unlock();
  return status;
}

enum ljp_status ljp_memprof_mark(struct lua_State *L, const char *name,
                                 size_t bytes, struct ljp_failure *why)
{
  enum ljp_status status = LJP_OK;
  lock();
  if (!g->running) {
    status =
        ljp_fail(why, LJP_ERR_RUN, EINVAL, "memory profiler is not running");
  } else if (ljp_guest_vm_id(L) != g->number) {
    status = ljp_fail(why, LJP_ERR_USE, EPERM,
                      "memory profiler was started by another VM "
                      "(number %u), which alone can set marks",
                      g->number);
  } else {
    ljp_recorder_mark(g->recorder, name, bytes);
  }
  unlock();
  return status;
}

void ljp_memprof_status(struct ljp_memprof_status *out)
{
  memset(out, 0, sizeof *out);
  lock();
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
  unlock();
}
