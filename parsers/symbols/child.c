/*
** The child process that reads files with symbols, and the parent's side of
** it. One child answers all modules. If it dies of a module, the next child
** continues there and asks less of that module: first without DWARF, then
** nothing. So a file costs at most its own names and some time.
**
** The parent checks what the child says like any input, since a file may have
** taken control of the child. A message is a type, three numbers, and the bytes
** that these announce. One thread.
*/
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "parsers/symbols/child.h"
#include "src/base/assert.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 /* Needs the whole address space and writes to stderr. */
#else
#define SANITIZED 0
#endif

#define CHILD_DATA_BYTES (UINT64_C(4) << 30)

enum message_type {
  MODULE = 1, /* The next job begins. a: its index. */
  ANSWER,     /* a: index of the address, b: number of FRAMEs that follow. */
  FRAME,      /* a: line, b and c: lengths of name and file, which follow. */
  NOTICE,     /* b: length of the text that follows. */
  FUNCTION,   /* a, b: address, low and high; c: length of the name. */
  END
};

struct message {
  uint32_t type, a, b, c;
};

struct pipe_end {
  int fd;
  bool bad;
  size_t at, len;
  char buf[1 << 16];
};

/* -- In the child ---------------------------------------------------------- */

static void child_flush(struct pipe_end *out)
{
  for (size_t done = 0; done < out->len;) {
    ssize_t n = write(out->fd, out->buf + done, out->len - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      _exit(1); /* The parent has gone. */
    done += (size_t)n;
  }
  out->len = 0;
}

static void child_put(struct pipe_end *out, const void *data, size_t len)
{
  ljp_assert(len <= sizeof out->buf);
  if (out->len + len > sizeof out->buf)
    child_flush(out);
  if (len)
    memcpy(out->buf + out->len, data, len);
  out->len += len;
}

static void child_put_message(struct pipe_end *out, enum message_type type,
                              uint32_t a, uint32_t b, uint32_t c)
{
  struct message message = {type, a, b, c};
  child_put(out, &message, sizeof message);
}

static uint32_t child_text_length(const char *text)
{
  return (uint32_t)strnlen(text, LJP_SYM_NAME_MAX);
}

static void child_answer(void *ctx, size_t index,
                         const struct ljp_symbol_frame *frames, unsigned count)
{
  struct pipe_end *out = ctx;
  child_put_message(out, ANSWER, (uint32_t)index, count, 0);
  for (unsigned i = 0; i < count; i++) {
    uint32_t name = child_text_length(frames[i].function);
    uint32_t file = child_text_length(frames[i].file);
    child_put_message(out, FRAME, frames[i].line, name, file);
    child_put(out, frames[i].function, name);
    child_put(out, frames[i].file, file);
  }
}

static void child_notice(void *ctx, const char *text)
{
  uint32_t len = child_text_length(text);
  child_put_message(ctx, NOTICE, 0, len, 0);
  child_put(ctx, text, len);
}

static void child_function(void *ctx, uint64_t address, const char *name)
{
  uint32_t len = child_text_length(name);
  child_put_message(ctx, FUNCTION, (uint32_t)address, (uint32_t)(address >> 32),
                    len);
  child_put(ctx, name, len);
}

static void child_limit(int what, rlim_t most)
{
  struct rlimit now;
  if (getrlimit(what, &now) != 0)
    return;
  if (now.rlim_max != RLIM_INFINITY && now.rlim_max < most)
    most = now.rlim_max;
  now.rlim_cur = most;
  setrlimit(what, &now);
}

static void child_guard(void)
{
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  child_limit(RLIMIT_CORE, 0);
  for (int sig = 1; sig < NSIG; sig++)
    signal(sig, sig == SIGPIPE ? SIG_IGN : SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (!SANITIZED) {
    child_limit(RLIMIT_DATA, CHILD_DATA_BYTES);
    /* The C library would report corrupted heaps to stderr. */
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0)
      dup2(null, STDERR_FILENO);
  }
}

static unsigned child_seconds(const struct ljp_symbols_options *options)
{
  return options->seconds ? options->seconds : 60;
}

static void child_main(int fd, const struct ljp_symbols_options *options,
                       const struct ljp_sym_job *jobs, size_t count,
                       size_t first, enum ljp_sym_level level)
{
  static struct pipe_end out;
  out = (struct pipe_end){.fd = fd};
  const struct ljp_sym_sink sink = {&out, child_answer, child_notice,
                                    child_function};
  child_guard();
  for (size_t i = first; i < count; i++) {
    child_put_message(&out, MODULE, (uint32_t)i, 0, 0);
    child_flush(&out);
    alarm(child_seconds(options));
    ljp_sym_lookup(options, &jobs[i].request, i == first ? level : LJP_SYM_FULL,
                   &sink);
  }
  child_put_message(&out, END, 0, 0, 0);
  child_flush(&out);
  _exit(0);
}

/* -- In the parent --------------------------------------------------------- */

static bool parent_get(struct pipe_end *in, void *data, size_t len)
{
  ljp_assert(in->at <= in->len && len <= sizeof in->buf);
  while (in->len - in->at < len) {
    memmove(in->buf, in->buf + in->at, in->len - in->at);
    in->len -= in->at;
    in->at = 0;
    ssize_t n = read(in->fd, in->buf + in->len, sizeof in->buf - in->len);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    in->len += (size_t)n;
  }
  memcpy(data, in->buf + in->at, len);
  in->at += len;
  return true;
}

/* Receives a text of any bytes; views make them safe. */
static bool parent_get_text(struct pipe_end *in, char *text, uint32_t len)
{
  if (len > LJP_SYM_NAME_MAX || !parent_get(in, text, len))
    return false;
  text[len] = '\0';
  return true;
}

static bool parent_get_answer(struct pipe_end *in,
                              const struct message *message,
                              const struct ljp_sym_job *job)
{
  static char texts[LJP_SYM_FRAMES_MAX][2][LJP_SYM_NAME_MAX + 1];
  static struct ljp_symbol_frame frames[LJP_SYM_FRAMES_MAX];
  if (message->a >= job->request.count || !message->b ||
      message->b > LJP_SYM_FRAMES_MAX)
    return false;
  for (uint32_t i = 0; i < message->b; i++) {
    struct message frame;
    if (!parent_get(in, &frame, sizeof frame) || frame.type != FRAME ||
        !parent_get_text(in, texts[i][0], frame.b) ||
        !parent_get_text(in, texts[i][1], frame.c))
      return false;
    frames[i] = (struct ljp_symbol_frame){texts[i][0], texts[i][1], frame.a};
  }
  job->sink.answer(job->sink.ctx, message->a, frames, message->b);
  return true;
}

/* Receives what a child says; true: the child has finished. *at is set to the
** job that it was working on. */
static bool parent_listen(struct pipe_end *in, const struct ljp_sym_job *jobs,
                          size_t count, size_t *at)
{
  static char text[LJP_SYM_NAME_MAX + 1];
  struct message message;
  bool begun = false;
  while (parent_get(in, &message, sizeof message)) {
    switch (message.type) {
    case MODULE:
      if (message.a >= count || message.a < *at)
        return false;
      *at = message.a;
      begun = true;
      break;
    case ANSWER:
      if (!begun || !parent_get_answer(in, &message, &jobs[*at]))
        return false;
      break;
    case NOTICE:
      if (!begun || !parent_get_text(in, text, message.b))
        return false;
      jobs[*at].sink.notice(jobs[*at].sink.ctx, text);
      break;
    case FUNCTION:
      if (!begun || !jobs[*at].request.functions ||
          !parent_get_text(in, text, message.c))
        return false;
      jobs[*at].sink.function(jobs[*at].sink.ctx,
                              (uint64_t)message.b << 32 | message.a, text);
      break;
    case END:
      return true;
    default:
      return false;
    }
  }
  return false;
}

static void parent_tell_failure(const struct ljp_symbols_options *options,
                                const struct ljp_sym_job *job, int status,
                                enum ljp_sym_level level)
{
  char text[LJP_SYM_NAME_MAX], why[64] = "its reader failed";
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGALRM)
      snprintf(why, sizeof why, "reading took more than %u s",
               child_seconds(options));
    else
      snprintf(why, sizeof why, "its reader died of signal %d",
               WTERMSIG(status));
  }
  snprintf(text, sizeof text, "%.3900s: %s: %s", job->request.path, why,
           level == LJP_SYM_FULL ? "names without lines" : "no names");
  job->sink.notice(job->sink.ctx, text);
}

/* Runs one child from job *at on; returns its status. -1: no child could be
** started. */
static int parent_run_child(const struct ljp_symbols_options *options,
                            const struct ljp_sym_job *jobs, size_t count,
                            size_t *at, enum ljp_sym_level level, bool *done)
{
  static struct pipe_end in;
  int ends[2], status = 0;
  if (pipe2(ends, O_CLOEXEC) != 0)
    return -1;
  pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    child_main(ends[1], options, jobs, count, *at, level);
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return -1;
  }
  in = (struct pipe_end){.fd = ends[0]};
  *done = parent_listen(&in, jobs, count, at);
  close(ends[0]);
  if (!*done)
    kill(pid, SIGKILL); /* It may have ended already. */
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  return status;
}

bool ljp_sym_run(const struct ljp_symbols_options *options,
                 const struct ljp_sym_job *jobs, size_t count)
{
  enum ljp_sym_level level = LJP_SYM_FULL;
  size_t at = 0;
  if (options->in_process) {
    for (; at < count; at++)
      ljp_sym_lookup(options, &jobs[at].request, LJP_SYM_FULL, &jobs[at].sink);
    return true;
  }
  while (at < count) {
    size_t first = at;
    bool done = false;
    int status = parent_run_child(options, jobs, count, &at, level, &done);
    if (status < 0)
      return false;
    if (done)
      return true;
    if (at != first)
      level = LJP_SYM_FULL;
    parent_tell_failure(options, &jobs[at], status, level);
    if (level == LJP_SYM_FULL) {
      level = LJP_SYM_NAMES;
    } else {
      level = LJP_SYM_FULL;
      at++;
    }
  }
  return true;
}
