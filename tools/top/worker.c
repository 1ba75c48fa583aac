/*
** The worker's loop. The profile is read by ljp_profile_add(), which calls back
** before each block, and when there is nothing to read: both are moments at
** which the profile can be shown.
*/
#include "tools/top/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tools/shared/command.h"

enum { WORKER_WAIT_MS = 250 };
#define WORKER_MS UINT64_C(1000000)
#define WORKER_WINDOW_NS (1000 * WORKER_MS)

static uint64_t worker_clock(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t ljp_worker_now(const struct ljp_worker *w)
{
  uint64_t now = worker_clock();
  bool lives = w->source.follows && !w->source.ended && !w->done;
  if (!lives || now < w->p->origin_ns || now - w->p->origin_ns < w->p->end_ns)
    return w->p->end_ns;
  return now - w->p->origin_ns;
}

uint32_t ljp_worker_seconds(const struct ljp_worker *w,
                            const struct ljp_top_query *query)
{
  enum { LIVE_SECONDS = 10 };
  if (query->seconds != LJP_TOP_AUTO)
    return query->seconds;
  return w->source.follows && !w->done ? LIVE_SECONDS : 0;
}

/* The screen is gone. */
_Noreturn static void worker_leave(struct ljp_worker *w)
{
  ljp_copy_end(&w->copy, false);
  if (w->options->joined)
    ljp_top_joined_leave(w->options->joined);
  _exit(LJP_EXIT_OK);
}

static void worker_send(struct ljp_worker *w,
                        const struct ljp_top_answer *answer)
{
  size_t bytes = sizeof *answer - sizeof answer->text + answer->text_bytes;
  if (send(w->fd, answer, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
      errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
    worker_leave(w);
}

/* Takes the queries that have come; the newest counts. */
static void worker_receive(struct ljp_worker *w)
{
  static struct ljp_top_answer done;
  struct ljp_top_query q;
  ssize_t n;
  while ((n = recv(w->fd, &q, sizeof q, MSG_DONTWAIT)) == sizeof q) {
    q.filter[sizeof q.filter - 1] = '\0';
    q.path[sizeof q.path - 1] = '\0';
    if (q.what != LJP_TOP_SHOW) {
      ljp_worker_act(w, &q, &done);
      worker_send(w, &done);
      continue;
    }
    w->query = q;
    w->asked = true;
  }
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
    worker_leave(w);
}

static void worker_show(struct ljp_worker *w)
{
  static struct ljp_top_answer answer;
  uint64_t now = worker_clock();
  bool news = !w->query.frozen && w->source.read_bytes != w->answered_bytes;
  /* While nothing happens, the window moves on all the same. Making views takes
  ** at most a fifth of the time. */
  uint64_t pause = news ? 500 * WORKER_MS : WORKER_WINDOW_NS;
  if (pause < 4 * w->answer_cost_ns)
    pause = 4 * w->answer_cost_ns;
  bool moves = !w->done && !w->query.frozen;
  if (!w->query.serial ||
      (!w->asked && (!(news || moves) || now - w->answered_ns < pause)))
    return;
  ljp_worker_answer(w, &answer);
  worker_send(w, &answer);
  w->asked = false;
  w->answered_ns = worker_clock();
  w->answer_cost_ns = w->answered_ns - now;
  w->answered_bytes = w->source.read_bytes;
}

static void worker_cut(struct ljp_worker *w)
{
  uint64_t now = ljp_worker_now(w);
  if (now >= w->recent.cut_ns + WORKER_WINDOW_NS &&
      ljp_recent_cut(&w->recent, w->p, now))
    snprintf(w->error, sizeof w->error, "out of memory");
}

/* What has happened to a joined program is shown even if nothing is read. */
static void worker_hear(struct ljp_worker *w)
{
  struct ljp_top_joined *joined = w->options->joined;
  if (!joined)
    return;
  ljp_top_joined_turn(joined);
  const char *state = ljp_top_joined_state(joined, w->done);
  w->asked |= state != w->state;
  w->state = state;
}

/* Serves the screen, once or, with nothing to read, until it is time to look
** again. A frozen view stays until the user lets it go. */
static void worker_serve(struct ljp_worker *w, int wait_ms)
{
  struct pollfd screen = {.fd = w->fd, .events = POLLIN};
  bool frozen;
  do {
    worker_hear(w);
    if (poll(&screen, 1, w->asked ? 0 : wait_ms) > 0)
      worker_receive(w);
    frozen = w->query.frozen && w->source.follows;
    if (!frozen)
      worker_cut(w);
    worker_show(w);
    if (frozen)
      wait_ms = w->options->joined ? WORKER_WAIT_MS : -1;
  } while (frozen);
}

static void worker_idle(void *ctx)
{
  worker_serve(ctx, WORKER_WAIT_MS);
}

static void worker_progress(void *ctx, uint64_t bytes)
{
  (void)bytes;
  worker_serve(ctx, 0);
}

static bool worker_writes(void *ctx)
{
  struct ljp_worker *w = ctx;
  return ljp_top_joined_writes(w->options->joined);
}

/* The file that RECORD began has ended. */
static void worker_end_record(struct ljp_worker *w, int error)
{
  static struct ljp_top_answer answer;
  if (ljp_worker_end_record(w, error, &answer))
    worker_send(w, &answer);
}

static enum ljp_status worker_observe(void *ctx,
                                      const struct ljp_reader *reader,
                                      const struct ljp_item *item)
{
  struct ljp_worker *w = ctx;
  (void)reader;
  struct ljp_top_joined *joined = w->options->joined;
  ljp_top_source_see(&w->source, item);
  if (joined && item->what == LJP_ITEM_BLOCK) {
    /* Before it may be freed. */
    int error = ljp_copy_block(&w->copy, item->block);
    if (error)
      worker_end_record(w, error);
    ljp_keep_block(&joined->keep, item->block->offset,
                   item->block->head.time_ns,
                   item->block->head.flags & LJP_BLOCK_KEY);
  }
  if (item->what != LJP_REC_MEM)
    ljp_series_take(&w->series, item);
  return LJP_OK;
}

/* The worker has no terminal, and does not take its signals. */
static void worker_leave_terminal(void)
{
  const int ignored[] = {SIGINT, SIGQUIT, SIGTSTP, SIGHUP, SIGPIPE};
  sigset_t none;
  for (unsigned i = 0; i < sizeof ignored / sizeof *ignored; i++)
    signal(ignored[i], SIG_IGN);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) {
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    close(null);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "ljprof-worker");
}

void ljp_top_worker(int fd, const struct ljp_top_options *options)
{
  static struct ljp_worker w;
  w.options = options;
  w.fd = fd;
  worker_leave_terminal();
  ljp_series_init(&w.series);
  ljp_copy_init(&w.copy, options->joined ? options->joined->file.fd : -1);
  w.source.idle = worker_idle;
  w.source.writes = options->joined ? worker_writes : NULL;
  w.source.ctx = &w;
  struct ljp_profile_options how = options->profile;
  how.symbols.no_network = how.symbols.no_dwarf = true;
  how.rates = true;
  how.progress = worker_progress;
  how.observe = worker_observe;
  how.progress_ctx = how.observe_ctx = &w;
  char why[LJP_READER_ERROR_BYTES] = "out of memory";
  w.p = ljp_profile_new(&how);
  if (!w.p)
    _exit(LJP_EXIT_FAILED);
  if (ljp_top_source_open(&w.source, options->path, why))
    snprintf(w.error, sizeof w.error, "%s", why);
  else if (ljp_profile_add(w.p, &w.source.reader))
    snprintf(w.error, sizeof w.error, "%.*s", (int)sizeof w.error - 1,
             w.p->error);
  w.done = true;
  worker_end_record(&w, 0);
  ljp_recent_cut(&w.recent, w.p, w.p->end_ns);
  w.asked = true;
  for (;;)
    worker_serve(&w, options->joined && !options->joined->dead ? WORKER_WAIT_MS
                                                               : -1);
}
