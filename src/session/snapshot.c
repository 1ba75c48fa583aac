/*
** See snapshot.h.
*/
#include "src/session/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/session/session.h"
#include "src/writer/heap_frames.h"
#include "src/writer/heap_writer.h"

enum { SNAPSHOT_P_PIDFD = 3 }; /* As the kernel has it; musl may lack it. */

/* What the copy tells: memory that the two processes share. */
struct snapshot_told {
  _Atomic bool done; /* The rest is complete. */
  enum ljp_status status;
  int error;
  uint64_t walk_ns, file_bytes, heap_bytes, unreadable;
  struct ljp_heap_sums sums;
};

struct ljp_snapshot {
  struct ljp_snapshot_options options;
  /* Of a file of its own. */
  struct ljp_sink sink;
  struct ljp_writer *writer;
  /* For a session. */
  struct ljp_heap_frames *frames;
  struct ljp_heap_writer *heap;
  struct snapshot_told *told;
  pid_t pid; /* Of the copy; 0: there is none. */
  int pidfd; /* -1: none, where the kernel has ignored the wish for one. */
  struct ljp_snapshot_result result;
};

/* -- Signals --------------------------------------------------------------- */

/* While all signals are blocked, a write may leave one of these pending. */
static void snapshot_own_signals(sigset_t *set)
{
  sigemptyset(set);
  sigaddset(set, SIGXFSZ);
  sigaddset(set, SIGPIPE);
}

struct snapshot_mask {
  sigset_t before, pending;
};

static void snapshot_block(struct snapshot_mask *mask)
{
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mask->before);
  sigpending(&mask->pending);
}

/* Signals of our writes do not reach the program. */
static void snapshot_unblock(const struct snapshot_mask *mask)
{
  static const int own[] = {SIGXFSZ, SIGPIPE};
  const struct timespec now = {0, 0};
  sigset_t set;
  snapshot_own_signals(&set);
  for (unsigned i = 0; i < sizeof own / sizeof *own; i++)
    if (sigismember(&mask->pending, own[i]))
      sigdelset(&set, own[i]);
  while (sigtimedwait(&set, NULL, &now) > 0)
    ;
  pthread_sigmask(SIG_SETMASK, &mask->before, NULL);
}

/* -- The walk, in the copy or in place ------------------------------------- */

static bool snapshot_has_file(const struct ljp_snapshot *s)
{
  return s->options.path || s->options.use_fd;
}

static int snapshot_error(const struct ljp_snapshot *s)
{
  return s->frames ? s->frames->error : s->sink.error;
}

static void snapshot_walk(struct ljp_snapshot *s)
{
  struct snapshot_told *told = s->told;
  struct ljp_heap_head head;
  const struct ljp_heap_about about = {.snapshot = s->options.number,
                                       .vm = s->options.vm,
                                       .taken = s->result.taken,
                                       .text_limit = s->options.text_limit};
  uint64_t start = ljp_clock_ns();
  s->options.head(s->options.ctx, &head);
  struct ljp_heap_out *out =
      ljp_heap_writer_begin(s->heap, &about, &head, start);
  bool whole = s->options.walk(s->options.ctx, out);
  uint64_t end = ljp_clock_ns();
  told->unreadable = out->unreadable;
  told->status = ljp_heap_writer_end(s->heap, end, &told->sums);
  if (!told->status && !s->frames)
    told->status = ljp_writer_put_end(s->writer);
  if (!told->status && !whole)
    told->status = LJP_ERR_IO;
  told->error = told->status ? snapshot_error(s) : 0;
  told->walk_ns = end - start;
  told->heap_bytes = head.heap_bytes;
  told->file_bytes = s->frames ? s->frames->bytes : s->sink.file.whole_bytes;
  atomic_store_explicit(&told->done, true, memory_order_release);
}

/* If memory runs out, the kernel shall end the copy, not the program. */
static void snapshot_offer_to_oom(void)
{
  static const char most[] = "1000";
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return;
  (void)!write(fd, most, sizeof most - 1);
  close(fd);
}

/* A heap that something has damaged could keep the walk busy for ever. */
static void snapshot_limit_time(void)
{
  enum { CPU_SECONDS = 600 };
  struct rlimit limit;
  if (getrlimit(RLIMIT_CPU, &limit))
    return;
  if (limit.rlim_max > CPU_SECONDS)
    limit.rlim_max = CPU_SECONDS;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_CPU, &limit);
}

/* The copy leaves the program's descriptors: a connection that the program
** closes must end at once. A crash leaves no core file of the program. */
static void snapshot_copy(struct ljp_snapshot *s)
{
  unsigned fd = (unsigned)(s->frames ? s->frames->fd : s->sink.file.open.fd);
#ifdef SYS_close_range
  if (fd)
    syscall(SYS_close_range, 0u, fd - 1, 0u);
  syscall(SYS_close_range, fd + 1, ~0u, 0u);
#endif
  prctl(PR_SET_NAME, "ljprof-heap", 0, 0, 0);
  snapshot_offer_to_oom();
  snapshot_limit_time();
  /* From here on only root could open its files in /proc. */
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  snapshot_walk(s);
  /* Never returns. Not marked as such: AddressSanitizer would look for the end
  ** of the stack, and this is a side stack. */
  while (syscall(SYS_exit_group, 0))
    ;
}

/* Returns 0 or an errno. */
static int snapshot_clone(struct ljp_snapshot *s)
{
  int pidfd = -1;
  long pid =
      syscall(SYS_clone, (unsigned long)CLONE_PIDFD, NULL, &pidfd, NULL, NULL);
  if (pid == 0)
    snapshot_copy(s);
  if (pid < 0)
    return errno;
  s->pid = (pid_t)pid;
  s->pidfd = pidfd;
  if (pidfd >= 0 && pidfd <= STDERR_FILENO) {
    int copy = fcntl(pidfd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (copy >= 0) {
      close(pidfd);
      s->pidfd = copy;
    }
  }
  return 0;
}

/* -- Begin ----------------------------------------------------------------- */

/* failed: the descriptor for a session is of no use any more. */
static void snapshot_free(struct ljp_snapshot *s, bool failed)
{
  ljp_heap_writer_free(s->heap);
  if (snapshot_has_file(s)) {
    ljp_writer_free(s->writer);
    ljp_sink_close(&s->sink);
    ljp_sink_fini(&s->sink);
  } else {
    free(s->frames);
    if (failed)
      close(s->options.scratch);
  }
  if (s->told)
    munmap(s->told, sizeof *s->told);
  free(s);
}

static enum ljp_status snapshot_prepare_frames(struct ljp_snapshot *s)
{
  s->frames = calloc(1, sizeof *s->frames);
  if (!s->frames)
    return LJP_ERR_MEM;
  s->frames->fd = s->options.scratch;
  return ljp_heap_writer_of_frames(&s->heap, s->frames);
}

static enum ljp_status snapshot_prepare_file(struct ljp_snapshot *s)
{
  const struct ljp_writer_options options = {
      .max_nodes = 4096,
      .zstd_level = s->options.zstd_level,
      .zstd_ready = true,
      .describe = {.ctx = s->options.ctx, .builtin = s->options.builtin}};
  enum ljp_status status = ljp_writer_new(&s->writer, &s->sink, &options);
  if (!status)
    status = ljp_heap_writer_new(&s->heap, s->writer);
  s->sink.stays_hidden = s->options.path != NULL;
  if (!status)
    status = ljp_writer_start(s->writer, ljp_clock_ns());
  if (!status) {
    ljp_writer_add_vm(s->writer, (uint32_t)s->options.vm, 0, "");
    ljp_writer_name_builtins(s->writer);
    status = ljp_writer_finish(s->writer);
  }
  return status;
}

/* The sink comes first: it can be closed then. */
static enum ljp_status snapshot_prepare(struct ljp_snapshot *s)
{
  enum ljp_status status =
      s->options.path ? ljp_sink_init_file(&s->sink, s->options.path, false)
                      : LJP_OK;
  if (s->options.use_fd)
    ljp_sink_init_fd(&s->sink, s->options.fd, NULL);
  if (status)
    return status;
  s->told = mmap(NULL, sizeof *s->told, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (s->told == MAP_FAILED) {
    s->told = NULL;
    return LJP_ERR_MEM;
  }
  return snapshot_has_file(s) ? snapshot_prepare_file(s)
                              : snapshot_prepare_frames(s);
}

enum ljp_status ljp_snapshot_begin(struct ljp_snapshot **out,
                                   const struct ljp_snapshot_options *options,
                                   struct ljp_snapshot_result *result,
                                   int *error)
{
  struct snapshot_mask mask;
  uint64_t start = ljp_clock_ns();
  ljp_session_watch_forks();
  struct ljp_snapshot *s = calloc(1, sizeof *s);
  *error = ENOMEM;
  if (!s) {
    if (!options->path && !options->use_fd)
      close(options->scratch);
    return LJP_ERR_MEM;
  }
  s->options = *options;
  s->pidfd = -1;
  snapshot_block(&mask);
  enum ljp_status status = snapshot_prepare(s);
  s->result.taken = LJP_HEAP_TAKEN_COPY;
  if (!status && options->moment &&
      !options->moment(options->ctx, &s->options.vm))
    s->result.taken = LJP_HEAP_TAKEN_MOMENT;
  if (!status && !options->in_place)
    *error = s->result.refused = snapshot_clone(s);
  if (!status && !s->pid && options->only_copy)
    status = LJP_ERR_LIMIT;
  if (!status && !s->pid) {
    s->result.taken = LJP_HEAP_TAKEN_PLACE;
    snapshot_walk(s);
  }
  snapshot_unblock(&mask);
  if (status) {
    if (snapshot_has_file(s) && s->sink.error)
      *error = s->sink.error;
    snapshot_free(s, true);
    return status;
  }
  *error = 0;
  s->result.pause_ns = ljp_clock_ns() - start;
  *result = s->result;
  *out = s;
  return LJP_OK;
}

/* -- End ------------------------------------------------------------------- */

/* Waits for the copy's end; the program may have waited for it already (by
** __WALL). */
static void snapshot_wait(struct ljp_snapshot *s)
{
  siginfo_t info;
  bool by_fd = s->pidfd >= 0;
  memset(&info, 0, sizeof info);
  while (waitid(by_fd ? (idtype_t)SNAPSHOT_P_PIDFD : P_PID,
                by_fd ? (id_t)s->pidfd : (id_t)s->pid, &info,
                WEXITED | __WCLONE) < 0)
    if (errno != EINTR)
      break;
  if (info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED)
    s->result.signal = info.si_status;
  if (by_fd)
    close(s->pidfd);
}

int ljp_snapshot_pidfd(const struct ljp_snapshot *s)
{
  return s->pid ? s->pidfd : -1;
}

void ljp_snapshot_kill(struct ljp_snapshot *s)
{
#ifdef SYS_pidfd_send_signal
  if (s->pid && s->pidfd >= 0)
    syscall(SYS_pidfd_send_signal, s->pidfd, SIGKILL, NULL, 0);
#else
  (void)s;
#endif
}

enum ljp_status ljp_snapshot_end(struct ljp_snapshot *s,
                                 struct ljp_snapshot_result *result, int *error)
{
  const struct snapshot_told *told = s->told;
  if (s->pid)
    snapshot_wait(s);
  /* Acquire: the copy has written the rest before. */
  bool done = atomic_load_explicit(&told->done, memory_order_acquire);
  enum ljp_status status = done ? told->status : LJP_ERR_IO;
  *error = done ? told->error : ECHILD;
  s->result.walk_ns = told->walk_ns;
  s->result.objects = told->sums.objects;
  s->result.refs = told->sums.refs;
  s->result.bytes = told->sums.bytes;
  s->result.file_bytes = told->file_bytes;
  s->result.heap_bytes = told->heap_bytes;
  s->result.unreadable = told->unreadable;
  if (!status && s->options.path) {
    s->sink.file.whole_bytes = told->file_bytes;
    status = ljp_sink_show(&s->sink);
    *error = status ? s->sink.error : 0;
  }
  *result = s->result;
  snapshot_free(s, status != LJP_OK);
  return status;
}
