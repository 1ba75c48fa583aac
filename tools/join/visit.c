/*
** See visit.h. Two clients cannot visit one process at the same time: each
** traces the leader of its threads first, and a thread has one tracer.
*/
#include "tools/join/visit.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/join/examine.h"
#include "tools/join/knock.h"
#include "tools/join/visit_priv.h"

enum { THREADS = 1024 };
#define VISIT_SECOND UINT64_C(1000000000)

/* Says why the visit failed, as printf() does. False. */
#define VISIT_REFUSE(v, ...)                                                   \
  (snprintf((v)->visit->why, sizeof(v)->visit->why, __VA_ARGS__), false)

bool ljp_visit_state(const struct ljp_visitor *v, struct ljp_join_state *out)
{
  return ljp_memory_get(v->memory, v->note->state, out, sizeof *out);
}

static bool visit_gone(struct ljp_visitor *v)
{
  struct ljp_proc_status s;
  bool lives = ljp_proc_status(v->pid, 0, &s) && !strchr("ZX", s.state);
  return VISIT_REFUSE(v, "process %d %s while it was being joined", (int)v->pid,
                      lives ? "became another program" : "ended");
}

/* -- The lock, and earlier visits ------------------------------------------ */
static bool visit_lock(struct ljp_visitor *v)
{
  enum { PATIENCE_S = 5, LOOK_US = 2000 };
  struct ljp_proc_status me, tracer;
  uint64_t until = ljp_visit_now() + PATIENCE_S * VISIT_SECOND;
  for (;;) {
    enum ljp_stop stop = ljp_stop_seize(v->pid);
    int error = errno;
    if (stop == LJP_STOP_GOOD)
      return true;
    if (stop == LJP_STOP_GONE || !ljp_proc_status(v->pid, 0, &me))
      return visit_gone(v);
    bool traced = me.tracer && ljp_proc_status(me.tracer, 0, &tracer);
    if (traced && strcmp(tracer.comm, "ljprof") != 0)
      return VISIT_REFUSE(v, "process %d (%s) is traced by process %d (%s)",
                          (int)v->pid, me.comm, (int)me.tracer, tracer.comm);
    const char *scope =
        ljp_examine_scope_text(ljp_examine_scope(), geteuid() == 0);
    if (!traced && error == EPERM && scope)
      return VISIT_REFUSE(v, "process %d (%s) may not be traced: %s",
                          (int)v->pid, me.comm, scope);
    if (!traced && error == EPERM && ljp_visit_now() > until - 4 * VISIT_SECOND)
      return VISIT_REFUSE(
          v,
          "process %d (%s) may not be traced: the system forbids it (%s; see "
          "kernel.yama.ptrace_scope and seccomp; for a container: --cap-add "
          "SYS_PTRACE): try sudo, " LJP_KNOCK_HINT,
          (int)v->pid, me.comm, strerror(error));
    if (ljp_visit_now() > until)
      return VISIT_REFUSE(
          v, "process %d (%s) is being joined by process %d (%s)", (int)v->pid,
          me.comm, (int)me.tracer, traced ? tracer.comm : "?");
    usleep(LOOK_US);
  }
}

/* The thread that has this number in the process's namespace; 0: none. */
static pid_t visit_thread_of(const struct ljp_visitor *v, pid_t ns_tid)
{
  pid_t tids[THREADS];
  struct ljp_proc_status status;
  unsigned count = ljp_proc_threads(v->pid, tids, THREADS);
  for (unsigned i = 0; i < count; i++)
    if (ljp_proc_status(v->pid, tids[i], &status) && status.ns_pid == ns_tid)
      return tids[i];
  return 0;
}

/* Is the thread that was sent into the entry last still on its way there or
** back? A thread that waits is not stopped to know. */
static bool visit_is_inside(struct ljp_visitor *v, pid_t ns_tid)
{
  struct user_regs_struct regs;
  struct iovec to = {&regs, sizeof regs};
  struct ljp_proc_place at;
  pid_t tid = visit_thread_of(v, ns_tid);
  if (tid && ljp_proc_call(v->pid, tid, &at) >= 0)
    return ljp_carry_inside(v, at.rip, at.rsp);
  /* Refused: this process may trace it since it was late. */
  enum ljp_stop seized = !tid            ? LJP_STOP_GONE
                         : tid == v->pid ? LJP_STOP_GOOD
                                         : ljp_stop_seize(tid);
  if (seized == LJP_STOP_GONE)
    return false;
  enum ljp_stop stop = ljp_stop_thread(tid);
  bool inside = stop == LJP_STOP_LATE ||
                (stop == LJP_STOP_GONE && seized == LJP_STOP_REFUSED) ||
                (stop == LJP_STOP_GOOD &&
                 !ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &to) &&
                 ljp_carry_inside(v, regs.rip, regs.rsp));
  if (tid == v->pid && stop == LJP_STOP_GOOD)
    ljp_stop_resume(tid);
  else if (stop == LJP_STOP_HALTED)
    ptrace(PTRACE_LISTEN, tid, NULL, NULL);
  else if (stop == LJP_STOP_GOOD)
    ljp_stop_release(tid);
  return inside;
}

static bool visit_await_others(struct ljp_visitor *v)
{
  enum { PATIENCE_S = 15, LOOK_US = 200 };
  struct ljp_join_state state;
  uint64_t until = ljp_visit_now() + PATIENCE_S * VISIT_SECOND;
  for (;;) {
    if (!ljp_visit_state(v, &state))
      return visit_gone(v);
    bool door =
        state.door == LJP_JOIN_DOOR_COMING || state.door == LJP_JOIN_DOOR_READY;
    /* With another pid, the state is a copy of the parent's (fork()). A thread
    ** that was sent may not have run since: its client may have ended before. */
    if (!state.attach || state.pid != v->ns_pid ||
        (!door && state.step != LJP_JOIN_ENTERED &&
         !visit_is_inside(v, state.tid)))
      return true;
    if (ljp_visit_now() > until)
      return VISIT_REFUSE(v,
                          "process %d: an earlier ljprof has not finished "
                          "joining it: %s",
                          (int)v->pid,
                          door && state.step != LJP_JOIN_ENTERED
                              ? "its thread 'ljprof-door' does not end"
                              : "a thread is still in our library; is it "
                                "stopped, or does it wait for malloc()?");
    ljp_stop_serve();
    usleep(LOOK_US);
  }
}

/* -- Which thread ---------------------------------------------------------- */
struct choice {
  pid_t tid, ns_tid;
  int order;
};

static int visit_by_order(const void *a, const void *b)
{
  const struct choice *x = a, *y = b;
  return x->order - y->order;
}

/* -1: never. Threads that wait come first: their stop costs nobody anything. */
static int visit_order(const struct ljp_visitor *v, pid_t tid,
                       unsigned *filtered, pid_t *ns_tid)
{
  struct ljp_proc_status s;
  if (!ljp_proc_status(v->pid, tid, &s) || strncmp(s.comm, "ljprof-", 7) == 0 ||
      strchr("ZXT", s.state) || s.seccomp == 1 ||
      (s.state == 't' && s.tracer != getpid()))
    return -1; /* Traced by this process, it has a signal, and goes on. */
  if (s.seccomp)
    ++*filtered;
  if (s.seccomp && v->visit->filters != LJP_FILTERS_HARMLESS)
    return -1;
  *ns_tid = s.ns_pid;
  long call = ljp_proc_call(v->pid, tid, NULL);
  return (s.state == 'D'              ? 80
          : call < 0                  ? 40
          : !ljp_moment_waits(call)   ? 30
          : ljp_moment_is_timed(call) ? 20
                                      : 10) +
         (tid != v->pid);
}

/* One thread. True: it has been sent into the entry. */
static bool visit_try(struct ljp_visitor *v, const struct choice *choice,
                      const char **why)
{
  pid_t tid = choice->tid;
  if (tid != v->pid && ljp_stop_seize(tid) != LJP_STOP_GOOD)
    return false;
  ljp_join_step("seized");
  enum ljp_stop stop = ljp_stop_thread(tid);
  v->stopped_ns = ljp_visit_now();
  v->visit->stops++;
  if (stop == LJP_STOP_HALTED)
    ptrace(PTRACE_LISTEN, tid, NULL, NULL);
  if (stop != LJP_STOP_GOOD) {
    *why = stop == LJP_STOP_LATE     ? "it does not stop"
           : stop == LJP_STOP_HALTED ? "it is stopped by a signal"
                                     : *why;
    return false;
  }
  ljp_join_step("stopped");
  v->looked++;
  const char *not_now = ljp_carry(v, tid, choice->ns_tid);
  if (!not_now) {
    v->visit->tid = tid;
    return true;
  }
  *why = not_now;
  if (tid == v->pid)
    ljp_stop_resume(tid);
  else
    ljp_stop_release(tid);
  v->visit->held_ns += ljp_visit_now() - v->stopped_ns;
  return false;
}

/* Stops a thread for a moment, to read its filters. One that has ended has none. */
static enum ljp_filters visit_filters_of(const struct ljp_visitor *v, pid_t tid)
{
  enum { PATIENCE_S = 10, LOOK_US = 200 };
  uint64_t until = ljp_visit_now() + PATIENCE_S * VISIT_SECOND;
  for (;;) {
    /* Refused: this process may trace it since it was late. */
    enum ljp_stop seized = tid == v->pid ? LJP_STOP_GOOD : ljp_stop_seize(tid);
    enum ljp_stop stop =
        seized == LJP_STOP_GONE ? seized : ljp_stop_thread(tid);
    if (stop == LJP_STOP_GONE)
      return seized == LJP_STOP_REFUSED ? LJP_FILTERS_HARMFUL
                                        : LJP_FILTERS_HARMLESS;
    if (stop != LJP_STOP_LATE)
      ljp_filters_read(tid);
    if (stop == LJP_STOP_HALTED)
      ptrace(PTRACE_LISTEN, tid, NULL, NULL);
    else if (stop == LJP_STOP_GOOD && tid == v->pid)
      ljp_stop_resume(tid);
    else if (stop == LJP_STOP_GOOD)
      ljp_stop_release(tid);
    if (stop != LJP_STOP_LATE)
      return ljp_filters_judge();
    if (ljp_visit_now() > until)
      return LJP_FILTERS_HARMFUL;
    ljp_stop_serve();
    usleep(LOOK_US);
  }
}

/* Before any thread is chosen: all that have filters. */
static void visit_look_at_filters(struct ljp_visitor *v)
{
  pid_t tids[THREADS];
  struct ljp_proc_status s;
  unsigned count = ljp_proc_threads(v->pid, tids, THREADS);
  v->visit->filters =
      count < THREADS ? LJP_FILTERS_HARMLESS : LJP_FILTERS_HARMFUL;
  for (unsigned i = 0; i < count && v->visit->filters == LJP_FILTERS_HARMLESS;
       i++)
    if (ljp_proc_status(v->pid, tids[i], &s) && s.seccomp > 0 &&
        !strchr("ZX", s.state))
      v->visit->filters = visit_filters_of(v, tids[i]);
}

/* On a busy machine a stop takes long, so few of them fit into ten seconds: then
** there are more seconds. */
static bool visit_has_patience(const struct ljp_visitor *v, uint64_t began)
{
  enum { PATIENCE_S = 10, MOST_S = 40, STOPS = 200 };
  uint64_t seconds = (ljp_visit_now() - began) / VISIT_SECOND;
  return seconds < PATIENCE_S ||
         (seconds < MOST_S && v->looked && v->looked < STOPS);
}

static bool visit_choose(struct ljp_visitor *v)
{
  enum { PAUSE_US = 200, MOST_PAUSE_US = 20000 };
  const char *why = "it has no thread that could be used";
  struct ljp_join_state state;
  const uint64_t began = ljp_visit_now();
  useconds_t pause = PAUSE_US;
  do {
    pid_t tids[THREADS];
    struct choice choice[THREADS];
    unsigned filtered = 0, n = 0;
    unsigned count = ljp_proc_threads(v->pid, tids, THREADS);
    if (!count || !ljp_visit_state(v, &state))
      return visit_gone(v);
    for (unsigned i = 0; i < count; i++) {
      pid_t ns_tid = 0;
      int order = visit_order(v, tids[i], &filtered, &ns_tid);
      if (order >= 0)
        choice[n++] = (struct choice){tids[i], ns_tid, order};
    }
    qsort(choice, n, sizeof *choice, visit_by_order);
    for (unsigned i = 0; i < n; i++)
      if (visit_try(v, &choice[i], &why))
        return true;
    if (!n && filtered)
      return VISIT_REFUSE(v,
                          "process %d: all its threads are in a sandbox "
                          "(seccomp), which may end the program for what the "
                          "profiler does: %sstart the program "
                          "with LJPROF_LISTEN=/PATH, and type '-p /PATH'",
                          (int)v->pid, ljp_filters_hint(v->visit->filters));
    ljp_stop_serve();
    usleep(pause);
    /* A thread that works is met at another place each time. */
    pause = pause < MOST_PAUSE_US ? pause + pause / 8 : PAUSE_US;
  } while (visit_has_patience(v, began));
  return VISIT_REFUSE(
      v,
      "process %d: in %d seconds there was no moment at which a "
      "thread could be used safely: %s",
      (int)v->pid, (int)((ljp_visit_now() - began) / VISIT_SECOND), why);
}

/* -- The visit ------------------------------------------------------------- */
/* The thread is in the entry, or has been: it makes the door. */
static bool visit_await_entry(struct ljp_visitor *v)
{
  enum { PATIENCE_S = 10, LOOK_US = 20 };
  struct ljp_join_state state;
  uint64_t until = ljp_visit_now() + PATIENCE_S * VISIT_SECOND;
  for (;;) {
    if (!ljp_visit_state(v, &state))
      return visit_gone(v);
    if (state.step == LJP_JOIN_LEFT) {
      if (!v->visit->pause_ns)
        v->visit->pause_ns =
            state.left_ns > v->stopped_ns ? state.left_ns - v->stopped_ns : 1;
      return true;
    }
    if (ljp_visit_now() > until)
      return VISIT_REFUSE(
          v,
          "process %d: its thread %d, which has to create a thread of ours, "
          "is not done yet, and goes on when it can: %s",
          (int)v->pid, (int)v->visit->tid,
          state.step == LJP_JOIN_ENTERED
              ? "it waits for memory (malloc), or is stopped"
              : "it has not run since");
    ljp_stop_serve();
    usleep(LOOK_US);
  }
}

static void visit_run(struct ljp_visitor *v)
{
  struct ljp_proc_status status;
  if (!ljp_proc_status(v->pid, 0, &status)) {
    visit_gone(v);
    return;
  }
  v->ns_pid = status.ns_pid;
  v->visit->good = visit_lock(v) && visit_await_others(v);
  if (v->visit->good)
    visit_look_at_filters(v);
  v->visit->good = v->visit->good && visit_choose(v) && visit_await_entry(v);
  ljp_stop_settle();
}

/* Ctrl-Z stops the client, but not this process: a thread would stay stopped. */
static void visit_ignore_halts(void)
{
  signal(SIGTSTP, SIG_IGN);
  signal(SIGTTIN, SIG_IGN);
  signal(SIGTTOU, SIG_IGN);
}

void ljp_visit_make(struct ljp_visit *visit, pid_t pid, int memory,
                    const struct ljp_join_place *note,
                    const struct ljp_maps *maps)
{
  static struct ljp_visitor v;
  int result[2];
  *visit = (struct ljp_visit){.fd = -1};
  v = (struct ljp_visitor){
      .pid = pid, .memory = memory, .note = note, .maps = maps, .visit = visit};
  ljp_code_read(&v.code, pid, maps);
  if (pipe(result)) {
    (void)VISIT_REFUSE(&v, "cannot make a pipe: %s", strerror(errno));
    return;
  }
  pid_t child = fork();
  if (child == 0) {
    close(result[0]);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    visit_ignore_halts();
    visit_run(&v);
    ssize_t n = write(result[1], visit, sizeof *visit);
    _exit(n != (ssize_t)sizeof *visit);
  }
  close(result[1]);
  if (child < 0 || read(result[0], visit, sizeof *visit) != sizeof *visit) {
    *visit = (struct ljp_visit){.fd = -1};
    (void)VISIT_REFUSE(&v, "process %d could not be joined", (int)pid);
  }
  close(result[0]);
  while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
    ;
}
