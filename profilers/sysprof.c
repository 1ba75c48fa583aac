/*
** Life cycle of the CPU profiler: start, stop, and what happens in between
** (rounds of the writer, lua_close, exit, fork). See sysprof.h.
**
** Invariants: one lock, never held while a signal handler of ours waits for
** it (handlers take none); the writer's rounds only try it, since stop waits
** for the writer while it holds it. What a late handler may touch is never
** given back: samplers, the unwind tables, the signal handler itself.
*/
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profilers/sysprof_priv.h"
#include "src/clock.h"
#include "src/event.h"
#include "src/saferead.h"

struct ljp_sysprof ljp_sysprof = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct ljp_sysprof *const g = &ljp_sysprof;

enum { POLL_BUDGET_US = 20000 };

/* -- The lock, and forks --------------------------------------------------------- */

static __thread pid_t forking; /* tid before the fork */

static void before_fork(void)
{
  forking = gettid();
}

/* In a fork's child somebody who is not there any more may hold it. */
static void lock(void)
{
  if (g->pid != getpid()) {
    pthread_mutex_init(&g->lock, NULL);
    g->pid = getpid();
  }
  pthread_mutex_lock(&g->lock);
}

static void unlock(void)
{
  pthread_mutex_unlock(&g->lock);
}

/* -- Failures ---------------------------------------------------------------------- */

static enum ljp_status fail(struct ljp_failure *why, enum ljp_status status,
                            int error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static enum ljp_status fail(struct ljp_failure *why, enum ljp_status status,
                            int error, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  vsnprintf(why->text, sizeof why->text, format, args);
  va_end(args);
  why->error = error;
  return status;
}

static int errno_of(enum ljp_status status)
{
  switch (status) {
  case LJP_ERR_MEM:
    return ENOMEM;
  case LJP_ERR_NOTSUP:
    return ENOTSUP;
  case LJP_ERR_RUN:
    return EBUSY;
  case LJP_ERR_IO:
    return EIO;
  default:
    return EINVAL;
  }
}

/* -- What the writer asks ------------------------------------------------------------ */

static bool describe_proto(void *ctx, uint32_t ref, struct ljp_proto_info *out)
{
  struct ljp_guest_proto proto;
  (void)ctx;
  if (!ljp_guest_proto(ref, &proto))
    return false;
  out->id = proto.id;
  out->first_line = proto.first_line;
  out->last_line = proto.last_line;
  out->flags = proto.flags;
  snprintf(out->chunk, sizeof out->chunk, "%s", proto.chunk);
  snprintf(out->name, sizeof out->name, "%s", proto.name);
  return true;
}

static bool describe_builtin(void *ctx, uint64_t ffid,
                             char name[LJP_NAME_BYTES])
{
  const char *known = ljp_guest_builtin((uint32_t)ffid);
  (void)ctx;
  if (known)
    snprintf(name, LJP_NAME_BYTES, "%s", known);
  return known != NULL;
}

/* -- VMs -------------------------------------------------------------------------- */

static void name_vms(void)
{
  for (int i = 0; i < LJP_SAMPLER_VMS; i++) {
    uint32_t number = atomic_load(&ljp_sampler_shared.vm[i].number);
    uint32_t id = atomic_load(&ljp_sampler_shared.vm[i].id);
    if (!number)
      continue;
    if (!id) {
      char name[24];
      snprintf(name, sizeof name, "VM %u", number);
      if (ljp_session_add_vm(g->session, 0, name, &id) == LJP_OK)
        atomic_store(&ljp_sampler_shared.vm[i].id, id);
    }
    /* Two rounds after lua_close() began it has ended. */
    if (atomic_load(&ljp_sampler_shared.vm[i].closing) &&
        atomic_fetch_add(&ljp_sampler_shared.vm[i].closing, 1) > 2) {
      ljp_session_end_vm(g->session, id);
      atomic_store(&ljp_sampler_shared.vm[i].id, 0);
      atomic_store(&ljp_sampler_shared.vm[i].closing, 0);
      atomic_store(&ljp_sampler_shared.vm[i].number, 0);
    }
  }
}

/* -- Meanwhile ----------------------------------------------------------------------- */

static bool handler_is_ours(int signal)
{
  struct sigaction now;
  return !sigaction(signal, NULL, &now) && (now.sa_flags & SA_SIGINFO) &&
         now.sa_sigaction == ljp_sampler_signal;
}

static void writer_round(void *ctx)
{
  (void)ctx;
  if (pthread_mutex_trylock(&g->lock))
    return; /* it starts or stops just now */
  if (g->running && g->pid == getpid()) {
    ljp_unwind_poll(ljp_sampler_shared.unwind, POLL_BUDGET_US);
    ljp_saferead_check();
    name_vms();
    if (g->armed && !handler_is_ours(g->options.signal)) {
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

static void on_deferred(void)
{
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
      for (int i = 0; i < LJP_SAMPLER_VMS; i++)
        if (atomic_load(&ljp_sampler_shared.vm[i].number) == number)
          atomic_store(&ljp_sampler_shared.vm[i].closing, 1);
  }
  unlock();
}

static const struct ljp_guest_listener listener = {.deferred = on_deferred,
                                                   .closing = on_closing};

/* exit() without lua_close(). Whoever holds the lock finishes it himself. */
__attribute__((destructor)) static void at_exit(void)
{
  struct ljp_failure why;
  if (g->pid != getpid() || pthread_mutex_trylock(&g->lock))
    return;
  if (g->running)
    stop_locked(&why);
  unlock();
}

static void fork_child(void *ctx, bool recording)
{
  (void)ctx;
  pthread_mutex_init(&g->lock, NULL);
  g->pid = getpid();
  ljp_unwind_after_fork(ljp_sampler_shared.unwind);
  memset(&g->ended, 0, sizeof g->ended);
  ljp_threads_after_fork(forking, recording);
  if (!recording)
    g->running = false; /* the rest is cleared by the next start */
}

/* -- Start --------------------------------------------------------------------------- */

void ljp_sysprof_options_init(struct ljp_sysprof_options *o)
{
  memset(o, 0, sizeof *o);
  o->mode = LJP_SAMPLER_STACKS;
  o->interval_ns = LJP_INTERVAL_DEFAULT_NS;
  o->max_overhead = 0.05;
  o->depth = LJP_DEPTH_MAX;
  o->signal = SIGPROF;
}

/* Handlers of ours may run long after a dlclose() of this library. */
static bool pin_library(void)
{
  Dl_info info;
  static bool pinned;
  if (pinned)
    return true;
  if (!dladdr((const void *)(uintptr_t)&pin_library, &info))
    return false;
  /* NULL: this is the program itself. */
  void *handle = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  if (!handle)
    dlerror();
  pinned = true;
  return true;
}

static size_t discard(const void **data, size_t len, void *ctx)
{
  (void)data;
  (void)ctx;
  return len;
}

static void put_info(const char *key, const char *format, double value)
{
  char text[64];
  snprintf(text, sizeof text, format, value);
  ljp_session_info(g->session, key, text);
}

static enum ljp_status open_session(struct ljp_failure *why)
{
  const struct ljp_sysprof_options *o = &g->options;
  struct ljp_session_options session = {
      .path = o->path,
      .callback = o->path       ? NULL
                  : o->callback ? o->callback
                                : discard,
      .callback_ctx = o->callback_ctx,
      .describe = {.proto = describe_proto, .builtin = describe_builtin},
      .round = writer_round,
      .flush_ms = o->flush_ms,
      .zstd_level = o->zstd_level,
      .sync = o->sync,
      .record_child = o->follow_fork,
      .fork_child = fork_child};
  int error = 0;
  enum ljp_status status = ljp_session_new(&g->session, &session);
  if (status)
    return fail(why, status, errno_of(status), "%s", ljp_status_text(status));
  static const char *const modes[] = {"D", "L", "C"};
  ljp_session_info(g->session, "option.mode", modes[o->mode]);
  ljp_session_info(g->session, "option.event", o->wall ? "wall" : "cpu");
  ljp_session_info(g->session, "option.timer", g->source->name);
  put_info("option.interval_us", "%.3f", (double)o->interval_ns / 1e3);
  status = ljp_session_start(g->session);
  if (status) {
    ljp_session_stop(g->session, &error);
    ljp_session_free(g->session);
    g->session = NULL;
    if (!error)
      error = errno_of(status);
    return fail(why, status, error, "%s: %s", o->path ? o->path : "output",
                strerror(error));
  }
  return LJP_OK;
}

static void close_session(int *error, enum ljp_status *status)
{
  *status = ljp_session_stop(g->session, error);
  g->bytes = ljp_session_bytes(g->session);
  ljp_session_free(g->session);
  g->session = NULL;
}

/* The handler is put in once and stays, as a stub that takes nothing. */
static enum ljp_status take_signal(struct ljp_failure *why)
{
  struct sigaction now,
      ours = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
  int signal = g->options.signal;
  if (sigaction(signal, NULL, &now))
    return fail(why, LJP_ERR_USE, EINVAL, "signal %d cannot be handled",
                signal);
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == ljp_sampler_signal)
    return LJP_OK;
  if ((now.sa_flags & SA_SIGINFO) ||
      (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN))
    return fail(why, LJP_ERR_RUN, EBUSY,
                "the program has a handler of its own for signal %d (SIG%s); "
                "choose another by the option signal=",
                signal, sigabbrev_np(signal) ? sigabbrev_np(signal) : "?");
  ljp_sampler_before = now;
  ours.sa_sigaction = ljp_sampler_signal;
  sigfillset(&ours.sa_mask);
  sigdelset(&ours.sa_mask, SIGSEGV);
  sigdelset(&ours.sa_mask, SIGBUS);
  sigdelset(&ours.sa_mask, SIGILL);
  sigdelset(&ours.sa_mask, SIGFPE);
  sigdelset(&ours.sa_mask, SIGTRAP);
  if (sigaction(signal, &ours, NULL))
    return fail(why, LJP_ERR_USE, errno, "signal %d: %s", signal,
                strerror(errno));
  return LJP_OK;
}

static enum ljp_status choose_source(struct ljp_failure *why)
{
  const struct ljp_sysprof_options *o = &g->options;
  g->source = &ljp_timer_posix;
  if (o->source == LJP_TIMER_POSIX || (o->wall && o->source == LJP_TIMER_AUTO))
    return LJP_OK;
  if (o->wall)
    return fail(why, LJP_ERR_USE, EINVAL,
                "event \"wall\" needs timer \"posix\" (or \"auto\")");
  int error = ljp_timer_perf.available();
  if (!error)
    g->source = &ljp_timer_perf;
  else if (o->source == LJP_TIMER_PERF)
    return fail(why, LJP_ERR_NOTSUP, error,
                "timer \"perf\" needs the right to count time in the kernel "
                "(kernel.perf_event_paranoid <= 1, or CAP_PERFMON): %s",
                strerror(error));
  return LJP_OK;
}

static enum ljp_status prepare(struct ljp_failure *why)
{
  static bool hooked;
  enum ljp_status status = LJP_OK;
  if (!hooked && pthread_atfork(before_fork, NULL, NULL))
    return fail(why, LJP_ERR_MEM, ENOMEM, "out of memory");
  hooked = true;
  pin_library();
  if (!ljp_sampler_shared.unwind)
    status = ljp_unwind_new(&ljp_sampler_shared.unwind);
  else
    status = ljp_unwind_poll(ljp_sampler_shared.unwind, POLL_BUDGET_US);
  if (status)
    return fail(why, status, errno_of(status), "unwind tables: %s",
                ljp_status_text(status));
  status = ljp_saferead_install();
  if (status)
    return fail(why, status, errno_of(status),
                "handlers for faulting reads: %s", ljp_status_text(status));
  return LJP_OK;
}

static void share_options(void)
{
  const struct ljp_sysprof_options *o = &g->options;
  ljp_sampler_shared.mode = o->mode;
  ljp_sampler_shared.wall = o->wall;
  ljp_sampler_shared.only_lua = o->threads == LJP_THREADS_LUA;
  ljp_sampler_shared.depth = o->depth;
  ljp_sampler_shared.backtracer = o->backtracer;
  for (int i = 0; i < LJP_SAMPLER_VMS; i++) {
    atomic_store(&ljp_sampler_shared.vm[i].number, 0);
    atomic_store(&ljp_sampler_shared.vm[i].id, 0);
    atomic_store(&ljp_sampler_shared.vm[i].closing, 0);
  }
  if (g->vm) {
    atomic_store(&ljp_sampler_shared.vm[g->vm % LJP_SAMPLER_VMS].number, g->vm);
    name_vms();
  }
}

static enum ljp_status start_locked(struct lua_State *L,
                                    const struct ljp_sysprof_options *options,
                                    struct ljp_failure *why)
{
  pid_t tid = gettid();
  char name[16];
  if (g->running)
    return fail(why, LJP_ERR_RUN, EBUSY, "profiler is running already");
  if (ljp_threads_blocks(tid, options->signal))
    return fail(why, LJP_ERR_USE, EINVAL,
                "signal %d is blocked in this thread; unblock it, or choose "
                "another by the option signal=",
                options->signal);
  if (g->session) { /* left over by a fork */
    ljp_session_free(g->session);
    g->session = NULL;
  }
  g->options = *options;
  g->options.path = NULL;
  g->path[0] = 0;
  if (options->path) {
    if (strlen(options->path) >= sizeof g->path)
      return fail(why, LJP_ERR_USE, ENAMETOOLONG, "path: %s",
                  strerror(ENAMETOOLONG));
    strcpy(g->path, options->path);
    g->options.path = g->path;
  }
  memset(&g->ended, 0, sizeof g->ended);
  g->bytes = 0;
  g->blocked = 0;
  g->failed = false;
  g->vm = L ? ljp_guest_vm_id(L) : 0;
  enum ljp_status status = choose_source(why);
  status = status ? status : take_signal(why);
  status = status ? status : prepare(why);
  if (status)
    return status;
  status = open_session(why);
  if (status) {
    ljp_saferead_remove();
    return status;
  }
  ljp_guest_protos_hold();
  g->ever = g->running = g->armed = true;
  share_options();
  ljp_guest_listen(&listener);
  ljp_threads_name(tid, name);
  int error = ljp_threads_add(tid, name);
  if (error) {
    struct ljp_failure ignored;
    g->options.on_stop = NULL;
    stop_locked(&ignored);
    return fail(why, LJP_ERR_RUN, error, "timer \"%s\": %s", g->source->name,
                strerror(error));
  }
  ljp_threads_scan();
  return LJP_OK;
}

/* -- Stop ---------------------------------------------------------------------------- */

static void put_counts(void)
{
  uint64_t state[LJP_SAMPLER_STATES];
  struct ljp_producer *events;
  if (g->options.mode != LJP_SAMPLER_COUNT || !g->options.path)
    return;
  if (ljp_session_add_producer(g->session, LJP_PRODUCER_EVENTS, 0, 0, 0,
                               &events))
    return;
  memcpy(state, g->ended.state, sizeof state);
  ljp_push_vmstate(events, ljp_clock_ns(), 0, state, LJP_SAMPLER_STATES);
}

static enum ljp_status stop_locked(struct ljp_failure *why)
{
  enum ljp_status status;
  int error = 0;
  ljp_threads_drop_all();
  g->armed = false;
  put_counts();
  g->running = false;
  ljp_guest_listen(NULL);
  close_session(&error, &status);
  ljp_guest_protos_release();
  ljp_saferead_remove();
  g->failed = status != LJP_OK;
  void (*on_stop)(void *) = g->options.on_stop;
  g->options.on_stop = NULL;
  if (on_stop)
    on_stop(g->options.on_stop_ctx);
  if (status)
    return fail(why, status, error ? error : errno_of(status), "%s: %s",
                g->path[0] ? g->path : "output",
                error ? strerror(error) : ljp_status_text(status));
  return LJP_OK;
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
  lock();
  if (!g->running)
    status = fail(why, LJP_ERR_RUN, EINVAL, "profiler is not running");
  else if (g->vm && L && ljp_guest_vm_id(L) != g->vm)
    status = fail(why, LJP_ERR_USE, EPERM,
                  "profiler was started by another VM (number %u), which alone "
                  "can stop it",
                  g->vm);
  else
    status = stop_locked(why);
  unlock();
  return status;
}

/* -- Questions ------------------------------------------------------------------------ */

void ljp_sysprof_report(struct ljp_sysprof_report *out)
{
  lock();
  *out = g->ended;
  if (g->running)
    ljp_threads_sum(out);
  unlock();
}

void ljp_sysprof_status(struct ljp_sysprof_status *out)
{
  memset(out, 0, sizeof *out);
  lock();
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
    strcpy(out->path, g->path);
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
