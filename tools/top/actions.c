/*
** What the worker does besides showing a view: writes it to a file, makes a flame
** graph page of its seconds, or records what comes into a file.
*/
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/top/views.h"

/* One line of an answer. */
__attribute__((format(printf, 2, 3))) static void
action_tell(struct ljp_top_answer *answer, const char *format, ...)
{
  static struct ljp_print safe; /* Too large for the stack. */
  char line[LJP_TOP_PATH_BYTES + 512];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  size_t len = n < 0                     ? 0
               : (size_t)n < sizeof line ? (size_t)n
                                         : sizeof line - 1;
  ljp_print_begin(&safe, -1);
  ljp_print_str(&safe, "M");
  ljp_print_safe(&safe, ljp_str(line, len));
  ljp_print_str(&safe, "\n");
  memcpy(answer->text, safe.buf, safe.len);
  answer->text_bytes = (uint32_t)safe.len;
}

static void action_save(struct ljp_worker *w, const struct ljp_top_query *q,
                        struct ljp_top_answer *answer)
{
  static struct ljp_top_text text; /* Too large for the stack. */
  int fd = open(q->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) {
    action_tell(answer, "cannot write '%s': %s", q->path, strerror(errno));
    return;
  }
  struct ljp_top_query shown = w->query;
  w->query = *q;
  ljp_print_begin(&text.out, fd);
  text.full = false;
  text.is_file = true;
  ljp_worker_write(w, &text);
  w->query = shown;
  int error = ljp_print_end(&text.out);
  if (close(fd) && !error)
    error = errno;
  if (error)
    action_tell(answer, "cannot write '%s': %s", q->path, strerror(error));
  else
    action_tell(answer, "saved as '%s'", q->path);
}

/* When the part begins of which a page can be made, since the profile's origin.
** All of a file is there. */
static uint64_t action_begin(const struct ljp_worker *w)
{
  const struct ljp_top_joined *joined = w->options->joined;
  return joined && joined->keep.freed && joined->keep.count &&
                 joined->keep.epochs[0].time_ns > w->p->origin_ns
             ? joined->keep.epochs[0].time_ns - w->p->origin_ns
             : 0;
}

/* The recording of a joined program becomes standard input, without what has
** been freed. */
static void action_open(const struct ljp_top_joined *joined)
{
  const struct ljp_keep *keep = &joined->keep;
  off_t begin = keep->freed ? (off_t)keep->epochs[0].offset : 0;
  int in = open(joined->file.path, O_RDONLY | O_CLOEXEC);
  if (in < 0 || lseek(in, begin, SEEK_SET) < 0 || dup2(in, STDIN_FILENO) < 0) {
    ljp_command_error("flame", "%s: %s", joined->file.shown, strerror(errno));
    _exit(LJP_EXIT_FAILED);
  }
}

/* In a child process: writes the page; what goes wrong, to fd. */
_Noreturn static void action_make_page(const struct ljp_worker *w,
                                       const struct ljp_top_query *q, int fd)
{
  char range[64], path[LJP_TOP_PATH_BYTES + 8], name[256];
  const struct ljp_top_joined *joined = w->options->joined;
  char *argv[8 + 2 * LJP_LABEL_FILTERS] = {
      "flame", joined ? "-" : (char *)w->options->path, "-o", path};
  uint64_t begin = action_begin(w), now = ljp_worker_now(w) - begin;
  uint64_t span = ljp_worker_seconds(w, q) * UINT64_C(1000000000);
  uint64_t from = now > span ? now - span : 0;
  int argc = 4;
  dup2(fd, STDERR_FILENO);
  if (joined) {
    action_open(joined);
    snprintf(name, sizeof name, "%s", joined->name);
    ljp_command_input = name;
  }
  /* A name that begins with '-' is no option. */
  snprintf(path, sizeof path, "%s%s", q->path[0] == '-' ? "./" : "", q->path);
  if (span && now) {
    snprintf(range, sizeof range, "%" PRIu64 ".%03u..%" PRIu64 ".%03u",
             from / 1000000000, (unsigned)(from / 1000000 % 1000),
             now / 1000000000, (unsigned)(now / 1000000 % 1000));
    argv[argc++] = "--time";
    argv[argc++] = range;
  }
  if (w->options->profile.no_symbols)
    argv[argc++] = "--no-symbols";
  for (unsigned i = 0; i < w->options->profile.labels.count; i++) {
    argv[argc++] = "--label";
    argv[argc++] = (char *)(uintptr_t)w->options->profile.labels.list[i];
  }
  _exit(ljp_command_flame(argc, argv));
}

static void action_page(struct ljp_worker *w, const struct ljp_top_query *q,
                        struct ljp_top_answer *answer)
{
  char why[512];
  size_t len = 0;
  ssize_t n;
  int fds[2], status;
  pid_t child = -1;
  uint64_t begin = action_begin(w);
  uint64_t seconds = ljp_worker_seconds(w, q);
  uint64_t span = !begin    ? 0
                  : seconds ? seconds * UINT64_C(1000000000)
                            : UINT64_MAX;
  if (strcmp(w->options->path, "-") == 0) {
    action_tell(answer, "standard input cannot be read again for a page");
    return;
  }
  if (w->options->joined && !w->options->joined->keep.count) {
    action_tell(answer,
                "no page: too little of the recording is kept (--room)");
    return;
  }
  if (pipe2(fds, O_CLOEXEC) == 0) {
    child = fork();
    if (child == 0)
      action_make_page(w, q, fds[1]);
    close(fds[1]);
    while (child > 0 && len < sizeof why &&
           (n = read(fds[0], why + len, sizeof why - len)) != 0)
      len += n > 0 ? (size_t)n : 0;
    close(fds[0]);
  }
  while (len && why[len - 1] == '\n')
    len--;
  if (child < 0 || waitpid(child, &status, 0) < 0)
    action_tell(answer, "no process for the page: %s", strerror(errno));
  else if (WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
           ljp_worker_now(w) - begin < span)
    action_tell(answer,
                "wrote the page '%s': of the last %" PRIu64
                " s, what came before is no longer kept",
                q->path, (ljp_worker_now(w) - begin) / 1000000000);
  else if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    action_tell(answer, "wrote the page '%s'", q->path);
  else
    action_tell(answer, "no page: %.*s", (int)len, why);
}

/* -- Recording into a file --------------------------------------------------- */
bool ljp_worker_end_record(struct ljp_worker *w, int error,
                           struct ljp_top_answer *answer)
{
  const struct ljp_finish *f = &w->source.reader.finish;
  if (w->copy.fd < 0 && !error)
    return false;
  if (!error)
    error = ljp_copy_end(&w->copy, w->done && f->closed != LJP_CLOSED_NOT);
  if (error)
    action_tell(answer, "the recording into '%s' has ended: %s", w->copy.path,
                strerror(error));
  else
    action_tell(answer, "recorded '%s': ljprof report shows it", w->copy.path);
  w->asked = true;
  return true;
}

static void action_record(struct ljp_worker *w, const struct ljp_top_query *q,
                          struct ljp_top_answer *answer)
{
  const struct ljp_top_joined *joined = w->options->joined;
  if (!*q->path && ljp_worker_end_record(w, 0, answer))
    return;
  if (!joined || w->done) {
    action_tell(answer, "nothing more comes that could be recorded");
  } else if (!joined->keep.count) {
    action_tell(answer,
                "no recording: too little of what was read is kept (--room)");
  } else if (*q->path && w->copy.fd < 0) {
    const struct ljp_keep_epoch *epoch =
        &joined->keep.epochs[joined->keep.count - 1];
    int error = ljp_copy_begin(&w->copy, q->path, epoch->offset);
    uint64_t since = ljp_worker_now(w) + w->p->origin_ns - epoch->time_ns;
    if (error)
      action_tell(answer, "cannot write '%s': %s", q->path, strerror(error));
    else
      action_tell(answer,
                  "recording into '%s', with the last %" PRIu64 " s; r ends it",
                  q->path, since / 1000000000);
  } else {
    action_tell(answer, "no recording runs");
  }
  w->asked = true;
}

void ljp_worker_act(struct ljp_worker *w, const struct ljp_top_query *query,
                    struct ljp_top_answer *answer)
{
  answer->serial = query->serial;
  if (query->what == LJP_TOP_SAVE)
    action_save(w, query, answer);
  else if (query->what == LJP_TOP_RECORD)
    action_record(w, query, answer);
  else
    action_page(w, query, answer);
}
