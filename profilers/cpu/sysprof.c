/*
** Life cycle of the CPU profiler: start, stop, and what happens in between
** (rounds of the writer, lua_close, exit, fork). See sysprof.h.
**
** Invariants: one lock, never held while a signal handler of ours waits for
** it (handlers take none); the writer's rounds only try it, since stop waits
** for the writer while it holds it. What a late handler may touch is never
** given back: samplers, the unwind tables, the signal handler itself.
*/
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profilers/cpu/priv.h"
#include "profilers/jit/jitdump.h"
#include "profilers/jit/trace_events.h"
#include "profilers/session/host.h"
#include "profilers/session/shared.h"
#include "profilers/session/stand_in.h"
#include "profilers/session/vms.h"
#include "src/base/clock.h"
#include "src/base/saferead.h"
#include "src/luajit/traces.h"
#include "src/luajit/vms.h"
#include "src/push/event.h"

struct ljp_sysprof ljp_sysprof = {.lock = LJP_PROFILER_LOCK_INIT};
static struct ljp_sysprof *const g = &ljp_sysprof;

static void lock(void)
{
  ljp_profiler_lock(&g->lock);
}

static void unlock(void)
{
  ljp_profiler_unlock(&g->lock);
}

/* -- Meanwhile ----------------------------------------------------------------------- */

static void begin_process(void)
{
  g->process_ns = ljp_clock_of(CLOCK_PROCESS_CPUTIME_ID);
  g->writer_cpu_ns = g->sampled_ns = 0;
}

/* CPU time of the process that was used neither by threads while they were
** sampled nor by the writer. */
static uint64_t unsampled_ns(void)
{
  uint64_t all = ljp_clock_of(CLOCK_PROCESS_CPUTIME_ID) - g->process_ns;
  uint64_t known = g->sampled_ns + ljp_threads_cpu() + g->writer_cpu_ns;
  return all > known ? all - known : 0;
}

static void writer_round(void *ctx)
{
  (void)ctx;
  if (!ljp_profiler_trylock(&g->lock))
    return; /* it starts or stops just now */
  if (g->running && g->lock.pid == getpid()) {
    ljp_host_poll_tables();
    ljp_saferead_check();
    ljp_vms_update(g->session);
    ljp_shared_round();
    g->writer_cpu_ns = ljp_clock_of(CLOCK_THREAD_CPUTIME_ID);
    if (g->armed && !ljp_sysprof_handler_is_ours(g->options.signal)) {
      /* The host has put its own handler there: it must not get our signals. */
      ljp_threads_drop_all();
      g->armed = false;
    }
    if (g->armed) {
      ljp_threads_scan();
      ljp_threads_pace();
    }
  }
  unlock();
}

/* Who starts or stops just now makes rounds enough. */
static void on_crowded(void)
{
  ljp_output_wake_writer(&g->lock, &g->running, &g->session);
}

/* What interrupts this is a sample of our own work. */
static void on_deferred(void)
{
  struct ljp_regs here = {.known = LJP_REGS_CALLEE_SAVED | 1u << LJP_RSP |
                                   1u << LJP_RIP};
  const struct ljp_regs *before = ljp_stand_in_regs;
  ljp_registers_here(&here);
  ljp_stand_in_regs = &here;
  pid_t tid = gettid();
  for (uint32_t i = 0; i < LJP_SAMPLERS; i++) {
    struct ljp_sampler *s =
        atomic_load_explicit(&ljp_samplers[i], memory_order_acquire);
    if (!s)
      break;
    if (s->tid == tid && atomic_load(&s->active)) {
      ljp_sampler_deferred(s);
      break;
    }
  }
  ljp_stand_in_regs = before;
}

static enum ljp_status stop_locked(struct ljp_failure *why);

static void on_closing(struct lua_State *L)
{
  struct ljp_failure why;
  uint32_t number = ljp_guest_vm_id(L);
  lock();
  if (g->running && number) {
    if (number == g->vm)
      stop_locked(&why);
    else
      ljp_vms_close(number);
  }
  unlock();
}

/* Before its first sample: it has an id then, and this thread, which is going to
** run it, need not wait for a round of the writer to be found. */
static void on_created(uint32_t number)
{
  lock();
  if (g->running) {
    ljp_vms_add(NULL, number);
    ljp_vms_update(g->session);
    if (g->armed && g->options.threads != LJP_THREADS_THIS)
      ljp_threads_meet(gettid());
  }
  unlock();
}

static const struct ljp_guest_listener listener = {
    .created = on_created, .deferred = on_deferred, .closing = on_closing};

/* exit() without lua_close(). After that of the memory profiler, which may use
** this session. */
__attribute__((destructor(200))) static void at_exit(void)
{
  struct ljp_failure why;
  if (!ljp_profiler_lock_at_exit(&g->lock))
    return;
  if (g->running)
    stop_locked(&why);
  unlock();
}

static void fork_child(void *ctx, bool recording)
{
  (void)ctx;
  ljp_profiler_lock_forked(&g->lock);
  ljp_host_forked();
  memset(&g->ended, 0, sizeof g->ended);
  begin_process();
  ljp_threads_after_fork(ljp_host_tid_before_fork(), recording);
  ljp_shared_forked(recording);
  ljp_trace_events_forked(recording ? g->session : NULL);
  if (recording) {
    ljp_guest_protos_ready(&g->hold);
  } else if (g->running) {
    ljp_guest_protos_release(&g->hold);
    ljp_guest_traces_release();
    g->running = false; /* the rest is cleared by the next start */
    ljp_shared_offer(NULL);
  }
}

/* -- Start --------------------------------------------------------------------------- */

void ljp_sysprof_options_init(struct ljp_sysprof_options *o)
{
  memset(o, 0, sizeof *o);
  o->mode = LJP_SAMPLER_STACKS;
  o->interval_ns = LJP_INTERVAL_DEFAULT_NS;
  o->max_overhead = 0.05;
  o->depth = LJP_STACK_MAX_FRAMES;
  const char *jitdump = secure_getenv("LJPROF_JITDUMP");
  o->jitdump = jitdump && strcmp(jitdump, "1") == 0;
}

static void share_options(void)
{
  const struct ljp_sysprof_options *o = &g->options;
  ljp_sampler_shared.unwind = ljp_host_tables();
  ljp_sampler_shared.mode = o->mode;
  ljp_sampler_shared.wall = o->wall;
  ljp_sampler_shared.only_lua = o->threads == LJP_THREADS_LUA;
  ljp_sampler_shared.depth = o->depth;
  ljp_sampler_shared.backtracer = o->backtracer;
  ljp_vms_reset();
  if (g->vm)
    ljp_vms_add(NULL, g->vm);
  ljp_vms_update(g->session); /* the one that has started it comes first */
  ljp_guest_each_vm(ljp_vms_add, NULL);
  ljp_vms_update(g->session);
}

static enum ljp_status start_locked(struct lua_State *L,
                                    const struct ljp_sysprof_options *options,
                                    struct ljp_failure *why)
{
  pid_t tid = gettid();
  char name[16];
  if (g->running)
    return ljp_fail(why, LJP_ERR_RUN, EBUSY, "profiler is running already");
  if (g->session) { /* left over by a fork */
    ljp_session_free(g->session);
    g->session = NULL;
  }
  g->options = *options;
  enum ljp_status status =
      ljp_output_keep_path(&g->options.output, g->path, why);
  if (status)
    return status;
  memset(&g->ended, 0, sizeof g->ended);
  begin_process();
  g->bytes = 0;
  g->blocked = 0;
  g->failed = false;
  g->vm = L ? ljp_guest_vm_id(L) : 0;
  status = ljp_sysprof_choose_source(why);
  if (!status && ljp_threads_blocks(tid, g->options.signal))
    status =
        ljp_fail(why, LJP_ERR_USE, EINVAL,
                 "signal %d is blocked in this thread; unblock it, or "
                 "choose another by the option %s=",
                 g->options.signal, g->source->signal ? "timer" : "signal");
  status = status ? status : ljp_sysprof_take_signal(why);
  status = status ? status : ljp_host_prepare(why);
  if (status)
    return status;
  status = options->jitdump ? ljp_jitdump_open(why) : LJP_OK;
  if (!status) {
    ljp_guest_protos_hold(&g->hold, on_crowded);
    status = ljp_sysprof_open(why, writer_round, fork_child);
    if (status) {
      ljp_guest_protos_release(&g->hold);
      ljp_jitdump_close(true);
    }
  }
  if (status) {
    ljp_host_release();
    return status;
  }
  ljp_guest_traces_hold();
  g->ever = g->running = g->armed = true;
  share_options();
  if (g->options.mode != LJP_SAMPLER_COUNT || g->options.jitdump)
    ljp_trace_events_begin(g->session);
  ljp_shared_offer(g->session);
  ljp_guest_protos_ready(&g->hold);
  ljp_guest_listen(LJP_LISTENER_CPU, &listener);
  ljp_threads_name(tid, name);
  int error = ljp_threads_add(tid, name);
  if (error) {
    struct ljp_failure ignored;
    g->options.output.on_stop = NULL;
    stop_locked(&ignored);
    return ljp_fail(why, LJP_ERR_RUN, error, "timer \"%s\": %s",
                    g->source->name, strerror(error));
  }
  ljp_threads_scan();
  return LJP_OK;
}

/* -- Stop ---------------------------------------------------------------------------- */

static void put_counts(void)
{
  uint64_t state[LJP_SAMPLER_STATES];
  struct ljp_producer *events;
  if (g->options.mode != LJP_SAMPLER_COUNT || !g->options.output.path)
    return;
  if (ljp_session_add_producer(g->session, LJP_PRODUCER_EVENTS, 0, 0, 0,
                               &events))
    return;
  memcpy(state, g->ended.state, sizeof state);
  ljp_push_vmstate(events, ljp_clock_ns(), 0, state, LJP_SAMPLER_STATES);
}

static enum ljp_status stop_locked(struct ljp_failure *why)
{
  ljp_threads_drop_all();
  g->armed = false;
  g->ended.unsampled_ns = unsampled_ns();
  put_counts();
  ljp_sysprof_tell_unsampled();
  g->running = false;
  ljp_shared_offer(NULL);
  ljp_trace_events_end();
  ljp_guest_listen(LJP_LISTENER_CPU, NULL);
  enum ljp_status status = ljp_output_stop(&g->options.output, &g->hold,
                                           &g->session, &g->bytes, why);
  ljp_guest_protos_release(&g->hold);
  ljp_guest_traces_release();
  ljp_host_release();
  g->failed = status != LJP_OK;
  ljp_output_ended(&g->options.output, &g->lock);
  return status;
}

enum ljp_status ljp_sysprof_start(struct lua_State *L,
                                  const struct ljp_sysprof_options *options,
                                  struct ljp_failure *why)
{
  lock();
  enum ljp_status status = start_locked(L, options, why);
  unlock();
  return status;
}

enum ljp_status ljp_sysprof_stop(struct lua_State *L, struct ljp_failure *why)
{
  enum ljp_status status;
  if (ljp_shared_in_use())
    return ljp_fail(why, LJP_ERR_RUN, EBUSY,
                    "the profiler shares its session with the memory profiler: "
                    "misc.profile.stop() ends both, misc.memprof.stop() that");
  lock();
  if (!g->running)
    status = ljp_fail(why, LJP_ERR_RUN, EINVAL, "profiler is not running");
  else if (g->vm && L && ljp_guest_vm_id(L) != g->vm)
    status =
        ljp_fail(why, LJP_ERR_USE, EPERM,
                 "profiler was started by another VM (number %u), which alone "
                 "can stop it",
                 g->vm);
  else
    status = stop_locked(why);
  unlock();
  return status;
}

void ljp_sysprof_disown(void)
{
  lock();
  g->vm = 0;
  unlock();
}

/* -- Questions ------------------------------------------------------------------------ */

void ljp_sysprof_report(struct ljp_sysprof_report *out)
{
  lock();
  *out = g->ended;
  if (g->running) {
    ljp_threads_sum(out);
    out->unsampled_ns = unsampled_ns();
  }
  unlock();
}

void ljp_sysprof_status(struct ljp_sysprof_status *out)
{
  struct ljp_guest_jit_counts jit;
  ljp_guest_jit_counts(&jit);
  memset(out, 0, sizeof *out);
  out->marks_cut = jit.marks_cut;
  lock();
  out->running = g->running;
  out->state = g->running ? "running" : !g->ever ? "idle" : "stopped";
  if (g->failed ||
      (g->running && ljp_session_state(g->session) != LJP_SESSION_RUNNING))
    out->state = "failed";
  if (g->ever) {
    out->timer = g->source->name;
    out->asked_ns = out->interval_ns = g->options.interval_ns;
    out->mode = g->options.mode;
    out->wall = g->options.wall;
    out->signal = g->options.signal;
    out->bytes = g->running ? ljp_session_bytes(g->session) : g->bytes;
    out->blocked = g->blocked;
    snprintf(out->path, sizeof out->path, "%s", g->path);
  }
  for (uint32_t i = 0; g->running && i < LJP_SAMPLERS; i++) {
    struct ljp_sampler *s = atomic_load(&ljp_samplers[i]);
    if (!s || !s->used)
      continue;
    out->threads++;
    uint64_t interval = atomic_load(&s->interval_ns);
    if (interval > out->interval_ns)
      out->interval_ns = interval;
  }
  out->throttled = out->interval_ns > out->asked_ns;
  unlock();
}
