/*
** Life cycle of the CPU profiler: start, stop, and what happens between them
** (rounds of the writer, lua_close, exit, fork). See sysprof.h.
**
** Invariants: one lock, which no signal handler takes. The writer's rounds only
** try it, because stop holds it while it waits for the writer. What a late
** handler may touch is never freed: samplers, unwind tables, the handler.
*/
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profilers/cpu/proc_task.h"
#include "profilers/cpu/signal.h"
#include "profilers/cpu/state.h"
#include "profilers/cpu/threads.h"
#include "profilers/cpu/watch.h"
#include "profilers/jit/jitdump.h"
#include "profilers/jit/trace_events.h"
#include "profilers/session/host.h"
#include "profilers/session/shared.h"
#include "profilers/session/side_run.h"
#include "profilers/session/stand_in.h"
#include "profilers/session/stopper.h"
#include "profilers/session/vms.h"
#include "src/base/assert.h"
#include "src/base/clock.h"
#include "src/base/copy.h"
#include "src/base/shown.h"
#include "src/luajit/traces.h"
#include "src/luajit/vms.h"

struct ljp_sysprof ljp_sysprof = {.lock =
                                      LJP_PROFILER_LOCK_INIT(ljp_copy_notice)};
static struct ljp_sysprof *const g = &ljp_sysprof;

static void sysprof_lock(void)
{
  ljp_profiler_lock(&g->lock);
}

static void sysprof_unlock(void)
{
  ljp_profiler_unlock(&g->lock);
}

/* -- Between start and stop ------------------------------------------------ */
static void sysprof_round(void *ctx)
{
  (void)ctx;
  ljp_watch_round();
  ljp_trace_events_round();
  if (!ljp_profiler_trylock(&g->lock)) {
    atomic_store(&g->missed, true);
    return;
  }
  if (g->running) {
    ljp_host_poll_tables();
    ljp_vms_update(g->session);
    g->writer_cpu_ns =
        ljp_clock_of(CLOCK_THREAD_CPUTIME_ID) + ljp_watch_cpu_ns();
    ljp_accounts_round(false);
    ljp_sysprof_check_signals();
    g->writer_tid = gettid();
    if (!ljp_sandbox_began()) {
      ljp_threads_scan(LJP_THREAD_NEW);
      ljp_throttle_update();
    }
  }
  sysprof_unlock();
}

/* Many freed functions wait for the writer. */
static void sysprof_on_crowded(void)
{
  ljp_output_wake_writer(&g->lock, &g->running, &g->session);
}

/* The move of a stack has ended: takes the sample that was deferred until now.
** A signal that interrupts this code samples our own work. */
static void sysprof_on_deferred(void)
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
      ljp_sampler_take_deferred(s);
      break;
    }
  }
  ljp_stand_in_regs = before;
}

static enum ljp_status sysprof_stop_locked(struct ljp_failure *why);

/* lua_close(), on the VM's own thread. */
static void sysprof_on_closing(struct lua_State *L)
{
  struct ljp_failure why;
  uint32_t number = ljp_guest_vm_id(L);
  sysprof_lock();
  if (g->running && number && number == g->vm) {
    g->options.output.end = LJP_END_CLOSE;
    sysprof_stop_locked(&why);
  }
  sysprof_unlock();
}

/* The end of lua_close(). */
static void sysprof_on_gone(struct lua_State *L)
{
  sysprof_lock();
  if (g->running)
    ljp_vms_close(ljp_guest_vm_id(L));
  sysprof_unlock();
}

static uint32_t sysprof_vm_id(uint32_t number)
{
  uint32_t id = 0;
  sysprof_lock();
  if (g->running)
    id = ljp_vms_ensure(number, g->session);
  sysprof_unlock();
  return id;
}

/* A new VM, before its first sample. The VM gets an id, and the thread, which is
** going to run it, a sampler. Neither waits for the writer, if possible. */
static enum ljp_status sysprof_created_here(void *L, const void *unused,
                                            struct ljp_failure *why)
{
  (void)unused;
  (void)why;
  sysprof_lock();
  if (g->running) {
    ljp_vms_add(NULL, ljp_guest_vm_id(L));
    ljp_vms_define(g->session);
    if (g->options.client) /* the timers' descriptors are not this thread's */
      ljp_session_wake(g->session);
    else if (g->options.threads != LJP_THREADS_THIS)
      ljp_threads_ensure(gettid());
  }
  sysprof_unlock();
  return LJP_OK;
}

static void sysprof_on_created(struct lua_State *L)
{
  ljp_side_run(sysprof_created_here, L, NULL, NULL);
}

static const struct ljp_guest_listener sysprof_listener = {
    .created = sysprof_on_created,
    .deferred = sysprof_on_deferred,
    .closing = sysprof_on_closing,
    .gone = sysprof_on_gone};

/* On the stopper's thread. */
static void sysprof_expire(const struct ljp_stopper *itself)
{
  struct ljp_failure why;
  ljp_shared_expire(); /* nobody joins a session whose time runs */
  sysprof_lock();
  if (g->running && g->stopper == itself)
    sysprof_stop_locked(&why);
  sysprof_unlock();
}

/* Starts the stopper, if the session's time is limited. Returns an errno. */
static int sysprof_limit(void)
{
  uint64_t until_ns = g->options.output.until_ns;
  return until_ns ? ljp_stopper_start(&g->stopper, until_ns, sysprof_expire)
                  : 0;
}

/* exit() without lua_close(). Runs after the destructor of the memory profiler,
** which may share this session. */
__attribute__((destructor(200))) static void sysprof_at_exit(void)
{
  struct ljp_failure why;
  if (!ljp_profiler_lock_at_exit(&g->lock))
    return;
  g->options.output.end = LJP_END_EXIT;
  if (g->running)
    sysprof_stop_locked(&why);
  sysprof_unlock();
}

/* Starts the watcher, if the session wants one. Returns an errno, or 0. */
static int sysprof_watch(void)
{
  enum { LEAST_NS = 500000 };
  uint64_t period = g->options.interval_ns;
  return g->options.wall
             ? ljp_watch_start(g->session,
                               period > LEAST_NS ? period : LEAST_NS,
                               g->options.max_overhead)
             : 0;
}

static void sysprof_forked(void *ctx, bool recording)
{
  (void)ctx;
  ljp_profiler_lock_forked(&g->lock);
  ljp_host_forked();
  memset(&g->ended, 0, sizeof g->ended);
  ljp_accounts_begin();
  ljp_sandbox_begin();
  ljp_watch_forked(recording);
  ljp_stopper_forked(&g->stopper);
  if (recording && sysprof_watch())
    g->armed = false;
  ljp_stopper_missing(g->session, recording ? sysprof_limit() : 0);
  ljp_threads_after_fork(ljp_host_tid_before_fork(), recording && g->armed);
  ljp_shared_forked(recording);
  ljp_trace_events_forked(recording ? g->session : NULL);
  if (recording) {
    ljp_guest_protos_ready(&g->hold);
    ljp_vms_forked(g->session);
  } else { /* another thread may have been beginning or ending it */
    ljp_guest_protos_release(&g->hold);
    ljp_guest_traces_release(&g->holds_traces);
    g->running = false; /* the rest is cleared by the next start */
    ljp_show_session(LJP_SHOWN_CPU, false, 0);
    ljp_shared_offer(NULL, NULL);
  }
  sysprof_unlock();
}

/* -- Start ----------------------------------------------------------------- */
/* Sets the options that the handlers need, and gives the VMs their ids. */
static void sysprof_set_shared(void)
{
  const struct ljp_sysprof_options *o = &g->options;
  ljp_sampler_shared.unwind = ljp_host_tables();
  ljp_sampler_shared.mode = o->mode;
  ljp_sampler_shared.wall = o->wall;
  ljp_sampler_shared.only_lua = o->threads == LJP_THREADS_LUA;
  ljp_sampler_shared.depth = o->depth;
  ljp_sampler_shared.ended_wait = false;
  ljp_sampler_shared.asked = ljp_signal_borrow(o->asked);
  ljp_sampler_shared.backtracer = o->backtracer;
  ljp_vms_reset();
  if (g->vm)
    ljp_vms_add(NULL, g->vm);
  ljp_vms_define(g->session); /* the VM that has started comes first */
  ljp_guest_each_vm(ljp_vms_add, NULL);
  ljp_vms_define(g->session);
}

static void sysprof_info_number(const char *key, const char *format,
                                double value)
{
  char text[64];
  snprintf(text, sizeof text, format, value);
  ljp_session_info(g->session, key, text);
}

static enum ljp_status sysprof_open(struct ljp_failure *why)
{
  static const char *const modes[] = {"D", "L", "C"};
  const struct ljp_sysprof_options *o = &g->options;
  enum ljp_status status = ljp_output_new(
      &o->output, sysprof_round, sysprof_forked, &g->hold, &g->session, why);
  if (status)
    return status;
  ljp_session_info(g->session, "option.mode", modes[o->mode]);
  ljp_session_info(g->session, "option.event", o->wall ? "wall" : "cpu");
  ljp_session_info(g->session, "option.timer", g->source->name);
  sysprof_info_number("option.signal", "%.0f", o->signal);
  sysprof_info_number("option.interval_us", "%.3f",
                      (double)o->interval_ns / 1e3);
  ljp_timer_note();
  ljp_session_on_look(g->session, ljp_sysprof_look, ljp_sysprof_first_look());
  return ljp_output_start(&o->output, &g->session, why);
}

/* From here on the session may end by itself: not before the other profilers
** have joined it. */
static enum ljp_status sysprof_commit_locked(struct ljp_failure *why)
{
  int error = sysprof_limit();
  if (error)
    return ljp_stopper_refused(why, error);
  enum ljp_status status =
      ljp_output_commit(&g->options.output, g->session, why);
  g->committed = !status;
  return status;
}

static enum ljp_status sysprof_start_here(void *L, const void *wanted,
                                          struct ljp_failure *why)
{
  const struct ljp_sysprof_options *options = wanted;
  pid_t tid = gettid();
  char name[16];
  if (g->running)
    return ljp_sysprof_busy(why);
  if (g->session) { /* left by a fork */
    ljp_session_free(g->session);
    g->session = NULL;
  }
  g->options = *options;
  enum ljp_status status =
      ljp_output_keep_path(&g->options.output, g->path, why);
  if (status)
    return status;
  memset(&g->ended, 0, sizeof g->ended);
  ljp_accounts_begin();
  g->bytes = g->blocked = g->resets = g->refusals = g->omissions = 0;
  g->failed = g->unreadable = g->hangs = false;
  ljp_sandbox_begin();
  g->vm = L ? ljp_guest_vm_id(L) : 0;
  struct ljp_task_look look = {0, 0};
  status = ljp_timer_choose(&g->options, &g->source, &g->refused, why);
  g->options.output.shares_table =
      options->jitdump || g->source == &ljp_timer_perf;
  if (!status && !options->client &&
      ljp_task_mask(tid, g->options.signal, 1, &look) != LJP_TASK_TAKES)
    status = ljp_fail(why, LJP_ERR_USE, EINVAL,
                      "signal %d is blocked in this thread; unblock it, or "
                      "choose another with the option signal=",
                      g->options.signal);
  status = status ? status : ljp_signal_install(g->options.signal, why);
  status = status ? status : ljp_host_prepare(why);
  if (status)
    return status;
  status =
      options->jitdump ? ljp_jitdump_open(options->jitdump_fds, why) : LJP_OK;
  if (!status) {
    ljp_guest_protos_hold(&g->hold, sysprof_on_crowded);
    status = sysprof_open(why);
    if (status) {
      ljp_guest_protos_release(&g->hold);
      ljp_jitdump_close(true);
    }
  }
  if (status) {
    ljp_host_release();
    return status;
  }
  ljp_guest_traces_hold(&g->holds_traces);
  g->ever = g->running = g->armed = true;
  ljp_show_session(LJP_SHOWN_CPU, true, g->options.client);
  g->committed = false;
  sysprof_set_shared();
  if (g->options.mode != LJP_SAMPLER_COUNT || g->options.jitdump)
    ljp_trace_events_begin(g->session);
  ljp_shared_offer(g->session, sysprof_vm_id);
  ljp_guest_protos_ready(&g->hold);
  ljp_guest_listen(LJP_LISTENER_CPU, &sysprof_listener);
  ljp_task_name(tid, name);
  int error = sysprof_watch();
  if (!error && !options->client)
    error = ljp_threads_add(tid, name, LJP_THREAD_FIRST);
  if (error && ljp_session_error(g->session))
    status =
        ljp_output_refused(&g->options.output, g->session, LJP_ERR_IO, why);
  else if (error)
    status = ljp_fail(why, LJP_ERR_RUN, error, "timer \"%s\": %s",
                      g->source->name, strerror(error));
  else
    ljp_threads_scan(LJP_THREAD_OLD);
  if (!status && !options->joint)
    status = sysprof_commit_locked(why);
  if (status) {
    struct ljp_failure ignored;
    g->options.output.on_stop = NULL;
    sysprof_stop_locked(&ignored);
  }
  return status;
}

/* -- Stop ------------------------------------------------------------------ */
static enum ljp_status sysprof_stop_here(void *unused, const void *unused_too,
                                         struct ljp_failure *why)
{
  (void)unused;
  (void)unused_too;
  ljp_assert(g->running && g->session);
  uint64_t process_ns = ljp_clock_of(CLOCK_PROCESS_CPUTIME_ID);
  ljp_stopper_end(&g->stopper);
  ljp_threads_drop_all(LJP_UNSAMPLED_LAST, false);
  ljp_watch_stop();
  ljp_unsampled_finish();
  ljp_unsampled_rest(process_ns, true);
  g->armed = false;
  ljp_signal_give_back();
  ljp_accounts_end(process_ns);
  ljp_sysprof_push_counts();
  g->running = false;
  ljp_show_session(LJP_SHOWN_CPU, false, 0);
  ljp_shared_offer(NULL, NULL);
  ljp_trace_events_settle(g->session);
  ljp_trace_events_end(!g->committed);
  ljp_guest_listen(LJP_LISTENER_CPU, NULL);
  enum ljp_status status = ljp_output_stop(&g->options.output, &g->hold,
                                           &g->session, &g->bytes, why);
  ljp_guest_protos_release(&g->hold);
  ljp_guest_traces_release(&g->holds_traces);
  if (!g->hangs) /* a handler may go on: see threads_leave_hanging() */
    ljp_host_release();
  g->failed = status != LJP_OK;
  return status;
}

static enum ljp_status sysprof_stop_locked(struct ljp_failure *why)
{
  enum ljp_status status = ljp_side_run(sysprof_stop_here, NULL, NULL, why);
  ljp_output_ended(&g->options.output, &g->lock);
  return status;
}

enum ljp_status ljp_sysprof_start(struct lua_State *L,
                                  const struct ljp_sysprof_options *options,
                                  struct ljp_failure *why)
{
  sysprof_lock();
  enum ljp_status status = ljp_side_run(sysprof_start_here, L, options, why);
  if (g->running && g->unsure) /* Another look, at those threads. */
    ljp_session_wake(g->session);
  sysprof_unlock();
  return status;
}

enum ljp_status ljp_sysprof_commit(struct ljp_failure *why)
{
  sysprof_lock();
  enum ljp_status status =
      g->running
          ? sysprof_commit_locked(why)
          : ljp_fail(why, LJP_ERR_RUN, EINVAL, "the session has ended already");
  sysprof_unlock();
  return status;
}

enum ljp_status ljp_sysprof_stop(struct lua_State *L, struct ljp_failure *why)
{
  enum ljp_status status;
  if (ljp_shared_in_use())
    return ljp_fail(why, LJP_ERR_RUN, EBUSY,
                    "the profiler shares its session with the memory profiler: "
                    "misc.profile.stop() stops both, misc.memprof.stop() "
                    "only the memory profiler");
  sysprof_lock();
  if (!g->running)
    status = ljp_fail(why, LJP_ERR_RUN, EINVAL, "profiler is not running");
  else if (g->options.client)
    status = ljp_fail(why, LJP_ERR_USE, EPERM,
                      "the session was started by ljprof (process %d), which "
                      "has joined the program: 'ljprof stop -p %d' ends it",
                      (int)g->options.client, (int)getpid());
  else if (g->vm && L && ljp_guest_vm_id(L) != g->vm)
    status =
        ljp_fail(why, LJP_ERR_USE, EPERM,
                 "profiler was started by another VM (number %u); only that VM "
                 "can stop it",
                 g->vm);
  else
    status = sysprof_stop_locked(why);
  sysprof_unlock();
  return status;
}

enum ljp_status ljp_sysprof_stop_joined(struct ljp_failure *why)
{
  sysprof_lock();
  enum ljp_status status =
      g->running && g->options.client
          ? sysprof_stop_locked(why)
          : ljp_fail(why, LJP_ERR_RUN, EINVAL,
                     "no session runs that ljprof has started");
  sysprof_unlock();
  return status;
}
