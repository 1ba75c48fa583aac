/*
** What a session of the CPU profiler needs before it can run: a signal, a
** timer source, a stream; and what the writer asks while it does. Part of
** sysprof.c, under its lock.
*/
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "profilers/cpu/priv.h"

static struct ljp_sysprof *const g = &ljp_sysprof;

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

static void protos_round(void *ticket)
{
  ljp_guest_protos_round((uintptr_t)ticket);
}

static size_t protos_gone(void *ticket, uint32_t *refs, size_t room)
{
  return ljp_guest_protos_gone((uintptr_t)ticket, refs, room);
}

static void protos_end(void *ticket)
{
  ljp_guest_protos_end((uintptr_t)ticket);
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

static bool describe_trace(void *ctx, uint64_t id, struct ljp_trace_info *out)
{
  struct ljp_guest_trace trace;
  (void)ctx;
  if (!ljp_guest_trace(id, &trace))
    return false;
  for (int i = 0; i < LJP_SAMPLER_VMS; i++)
    if (atomic_load(&ljp_sampler_shared.vm[i].number) == trace.vm)
      out->vm = atomic_load(&ljp_sampler_shared.vm[i].id);
  out->number = trace.number;
  out->parent = trace.parent;
  out->parent_exit = trace.parent_exit;
  out->root = trace.root;
  out->link = trace.link;
  out->place =
      ljp_frame_lua(LJP_FRAME_LUA, 0, trace.place_ref, trace.place_line);
  out->code_address = trace.code;
  out->code_bytes = trace.code_bytes;
  snprintf(out->link_type, sizeof out->link_type, "%s", trace.link_type);
  out->ir_count = trace.ir_count;
  out->snapshots = trace.snapshots;
  out->marks = trace.marks;
  out->marks_cut = trace.marks_cut;
  out->flags = trace.truncated ? LJP_TRACE_TRUNCATED : 0;
  return true;
}

void ljp_recording_describe(struct ljp_describe *describe)
{
  describe->proto = describe_proto;
  describe->trace = describe_trace;
  describe->builtin = describe_builtin;
  describe->round = protos_round;
  describe->gone = protos_gone;
  describe->end = protos_end;
}

/* -- For the memory profiler ------------------------------------------------- */

struct ljp_session *ljp_sysprof_session(void)
{
  return g->session;
}

uint32_t ljp_sysprof_vm_id(uint32_t number)
{
  for (int i = 0; i < LJP_SAMPLER_VMS; i++)
    if (atomic_load(&ljp_sampler_shared.vm[i].number) == number)
      return atomic_load(&ljp_sampler_shared.vm[i].id);
  return 0;
}

struct ljp_unwind *ljp_sysprof_tables(void)
{
  return ljp_sampler_shared.unwind;
}

/* The writer threads of two sessions, and who starts one. */
static pthread_mutex_t tables = PTHREAD_MUTEX_INITIALIZER;

enum ljp_status ljp_sysprof_poll_tables(void)
{
  enum { BUDGET_US = 20000 };
  if (pthread_mutex_trylock(&tables))
    return LJP_OK; /* somebody is at it */
  enum ljp_status status =
      ljp_unwind_poll(ljp_sampler_shared.unwind, BUDGET_US);
  pthread_mutex_unlock(&tables);
  return status;
}

enum ljp_status ljp_sysprof_look_at_tables(void)
{
  pthread_mutex_lock(&tables);
  enum ljp_status status = ljp_sampler_shared.unwind
                               ? ljp_unwind_look(ljp_sampler_shared.unwind)
                               : ljp_unwind_new(&ljp_sampler_shared.unwind);
  pthread_mutex_unlock(&tables);
  return status;
}

void ljp_recording_hurry(bool begin)
{
  if (ljp_sampler_shared.unwind)
    ljp_unwind_hurry(ljp_sampler_shared.unwind, begin);
}

void ljp_sysprof_hold_tables(void)
{
  struct ljp_unwind *unwind = ljp_sampler_shared.unwind;
  if (unwind)
    ljp_unwind_hurry(unwind, true);
  pthread_mutex_lock(&tables);
  if (unwind)
    ljp_unwind_hurry(unwind, false);
}

void ljp_sysprof_let_go_of_tables(void)
{
  pthread_mutex_unlock(&tables);
}

void ljp_sysprof_tables_forked(void)
{
  if (ljp_sampler_shared.unwind)
    ljp_unwind_after_fork(ljp_sampler_shared.unwind);
}

/* -- VMs -------------------------------------------------------------------------- */

void ljp_sysprof_meet_vm(void *ctx, uint32_t number)
{
  (void)ctx;
  uint32_t room = LJP_SAMPLER_VMS;
  for (uint32_t i = 0; i < LJP_SAMPLER_VMS; i++) {
    uint32_t at = (number + i) % LJP_SAMPLER_VMS;
    uint32_t there = atomic_load(&ljp_sampler_shared.vm[at].number);
    if (there == number)
      return;
    if (!there && room == LJP_SAMPLER_VMS)
      room = at;
  }
  uint32_t none = 0;
  if (room < LJP_SAMPLER_VMS)
    atomic_compare_exchange_strong(&ljp_sampler_shared.vm[room].number, &none,
                                   number);
}

void ljp_sysprof_tell_unsampled(void)
{
  char text[32];
  snprintf(text, sizeof text, "%llu",
           (unsigned long long)g->ended.unsampled_ns);
  ljp_session_info(g->session, "cpu.unsampled_ns", text);
}

void ljp_sysprof_name_vms(void)
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

/* -- What a session takes from the process ------------------------------------ */

/* Handlers of ours may run long after a dlclose() of this library. */
bool ljp_sysprof_pin(void)
{
  Dl_info info;
  static bool pinned;
  if (pinned)
    return true;
  if (!dladdr((const void *)(uintptr_t)&ljp_sysprof_pin, &info))
    return false;
  /* NULL: this is the program itself. */
  void *handle = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  if (!handle)
    dlerror();
  pinned = true;
  return true;
}

bool ljp_sysprof_handler_is_ours(int signal)
{
  struct sigaction now;
  return !sigaction(signal, NULL, &now) && (now.sa_flags & SA_SIGINFO) &&
         now.sa_sigaction == ljp_sampler_signal;
}

/* The handler is put in once and stays, as a stub that takes nothing. */
enum ljp_status ljp_sysprof_take_signal(struct ljp_failure *why)
{
  struct sigaction now,
      ours = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
  int signal = g->options.signal;
  if (sigaction(signal, NULL, &now))
    return ljp_fail(why, LJP_ERR_USE, EINVAL, "signal %d cannot be handled",
                    signal);
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == ljp_sampler_signal)
    return LJP_OK;
  if ((now.sa_flags & SA_SIGINFO) ||
      (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN))
    return ljp_fail(
        why, LJP_ERR_RUN, EBUSY,
        "the program has a handler of its own for signal %d (SIG%s); "
        "choose another by the option %s=",
        signal, sigabbrev_np(signal) ? sigabbrev_np(signal) : "?",
        g->source->signal ? "timer" : "signal");
  ljp_sampler_before = now;
  ours.sa_sigaction = ljp_sampler_signal;
  sigfillset(&ours.sa_mask);
  sigdelset(&ours.sa_mask, SIGSEGV);
  sigdelset(&ours.sa_mask, SIGBUS);
  sigdelset(&ours.sa_mask, SIGILL);
  sigdelset(&ours.sa_mask, SIGFPE);
  sigdelset(&ours.sa_mask, SIGTRAP);
  if (sigaction(signal, &ours, NULL))
    return ljp_fail(why, LJP_ERR_USE, errno, "signal %d: %s", signal,
                    strerror(errno));
  return LJP_OK;
}

static enum ljp_status no_trap(struct ljp_failure *why, int error)
{
  if (error == EOPNOTSUPP)
    return ljp_fail(why, LJP_ERR_NOTSUP, error,
                    "timer \"trap\" needs Linux 6.15 or later; "
                    "\"perf\" does the same");
  return ljp_fail(why, LJP_ERR_NOTSUP, error,
                  "timer \"trap\" needs the right to count time in the kernel "
                  "(kernel.perf_event_paranoid <= 1, or CAP_PERFMON): %s",
                  strerror(error));
}

/* There if the process runs under ThreadSanitizer. */
extern void __tsan_init(void) __attribute__((weak));

static enum ljp_status choose(struct ljp_failure *why)
{
  const struct ljp_sysprof_options *o = &g->options;
  g->source = &ljp_timer_posix;
  if (o->source == LJP_TIMER_POSIX || (o->wall && o->source == LJP_TIMER_AUTO))
    return LJP_OK;
  if (o->wall)
    return ljp_fail(why, LJP_ERR_USE, EINVAL,
                    "event \"wall\" needs timer \"posix\" (or \"auto\")");
  if (o->source == LJP_TIMER_TRAP) {
    int error = ljp_timer_trap.available();
    g->source = &ljp_timer_trap;
    return error ? no_trap(why, error) : LJP_OK;
  }
  int error = ljp_timer_perf.available();
  if (!error)
    g->source = &ljp_timer_perf;
  else if (o->source == LJP_TIMER_PERF)
    return ljp_fail(
        why, LJP_ERR_NOTSUP, error,
        "timer \"perf\" needs the right to count time in the kernel "
        "(kernel.perf_event_paranoid <= 1, or CAP_PERFMON): %s",
        strerror(error));
  return LJP_OK;
}

enum ljp_status ljp_sysprof_choose_source(struct ljp_failure *why)
{
  struct ljp_sysprof_options *o = &g->options;
  /* Its reasons stand in test/e2e/tsan_host.c. */
  if (__tsan_init)
    return ljp_fail(why, LJP_ERR_NOTSUP, ENOTSUP,
                    "no CPU samples under ThreadSanitizer, which puts signals "
                    "off until their context is gone; use a build without it");
  enum ljp_status status = choose(why);
  if (status)
    return status;
  int only = g->source->signal;
  if (only && o->signal && o->signal != only)
    return ljp_fail(why, LJP_ERR_USE, EINVAL,
                    "timer \"%s\" sends signal %d (SIG%s) and no other; leave "
                    "the option signal= out",
                    g->source->name, only, sigabbrev_np(only));
  o->signal = only ? only : o->signal ? o->signal : SIGPROF;
  return LJP_OK;
}

/* -- Its stream ------------------------------------------------------------------ */

static void put_info(const char *key, const char *format, double value)
{
  char text[64];
  snprintf(text, sizeof text, format, value);
  ljp_session_info(g->session, key, text);
}

enum ljp_status ljp_sysprof_open(struct ljp_failure *why,
                                 void (*round)(void *ctx),
                                 void (*fork_child)(void *ctx, bool recording))
{
  const struct ljp_sysprof_options *o = &g->options;
  enum ljp_status status =
      ljp_recording_new(&o->to, round, fork_child, &g->hold, &g->session, why);
  if (status)
    return status;
  static const char *const modes[] = {"D", "L", "C"};
  ljp_session_info(g->session, "option.mode", modes[o->mode]);
  ljp_session_info(g->session, "option.event", o->wall ? "wall" : "cpu");
  ljp_session_info(g->session, "option.timer", g->source->name);
  put_info("option.interval_us", "%.3f", (double)o->interval_ns / 1e3);
  return ljp_recording_start(&o->to, &g->session, why);
}
