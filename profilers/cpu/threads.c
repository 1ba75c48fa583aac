/*
** Which threads are sampled, and how often. See priv.h.
**
** Other threads are found by looking into /proc/self/task at each round of the
** writer: no thread of the host has to do anything for it. One that blocks the
** signal is left alone: it may be waiting for signals by sigwait().
*/
#include "profilers/cpu/priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/clock.h"

enum { FRESH_ROUNDS = 8, ROUNDS_TO_WAIT = 50000, THROTTLE_MIN_NS = 20000000 };

static struct ljp_sysprof *const g = &ljp_sysprof;

static struct ljp_sampler *sampler_at(uint32_t i)
{
  return atomic_load_explicit(&ljp_samplers[i], memory_order_acquire);
}

#define FOR_EACH_USED(s)                                                       \
  for (uint32_t i_ = 0; i_ < LJP_SAMPLERS && sampler_at(i_); i_++)             \
    for (struct ljp_sampler *s = sampler_at(i_); s && s->used; s = NULL)

/* -- What /proc says ---------------------------------------------------------- */

static size_t read_proc(pid_t tid, const char *file, char *out, size_t room)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%ld/%s", (long)tid, file);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, out, room - 1) : -1;
  if (fd >= 0)
    close(fd);
  out[n > 0 ? n : 0] = 0;
  return n > 0 ? (size_t)n : 0;
}

bool ljp_threads_blocks(pid_t tid, int signal)
{
  char text[4096];
  read_proc(tid, "status", text, sizeof text);
  const char *at = strstr(text, "\nSigBlk:");
  return at && (strtoull(at + 8, NULL, 16) >> (signal - 1) & 1);
}

void ljp_threads_name(pid_t tid, char name[16])
{
  char text[32];
  read_proc(tid, "comm", text, sizeof text);
  text[strcspn(text, "\n")] = 0;
  snprintf(name, 16, "%.15s", text);
}

/* -- One thread ---------------------------------------------------------------- */

/* A free sampler: one that was used before, or new memory. */
static struct ljp_sampler *take_free(void)
{
  uint32_t i = 0;
  for (; i < LJP_SAMPLERS && sampler_at(i); i++)
    if (!sampler_at(i)->used)
      return sampler_at(i);
  if (i == LJP_SAMPLERS)
    return NULL;
  size_t bytes = sizeof(struct ljp_sampler) +
                 LJP_STACK_MAX_FRAMES * sizeof(uint64_t) +
                 sizeof(struct ljp_memo);
  /* Touched now: the handler is not to be the first. */
  struct ljp_sampler *s =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (s == MAP_FAILED)
    return NULL;
  s->frames = (uint64_t *)(s + 1);
  s->memo = (struct ljp_memo *)(s->frames + LJP_STACK_MAX_FRAMES);
  s->index = i;
  s->fd = s->timer[0] = s->timer[1] = s->park = -1;
  atomic_store_explicit(&ljp_samplers[i], s, memory_order_release);
  return s;
}

/* CPU time that a thread has used so far. */
static uint64_t cpu_of(pid_t tid)
{
  return ljp_clock_of((clockid_t)(~(unsigned)tid << 3 | 6u));
}

static void begin_accounts(struct ljp_sampler *s)
{
  s->cpu_ns = s->cpu_begin_ns = cpu_of(s->tid);
  s->clock_ns = s->asked_ns = ljp_clock_ns();
  s->switches = 0;
  s->idle_run = 0;
  s->deferred = 0;
  s->deferred_ns = 0;
  s->throttle_time_ns = s->throttle_handler_ns = 0;
  s->until_rearm = 0;
  s->rest_until_ns = 0;
  s->memo->valid = false;
  s->random = ((uint32_t)s->clock_ns ^ (uint32_t)s->tid << 8) | 1;
  atomic_store(&s->parked, false);
  atomic_store(&s->resync, true);
}

/* The end of a thread that is gone is not known, but for what its last sample
** stood for. */
static uint64_t cpu_since(const struct ljp_sampler *s)
{
  uint64_t now = cpu_of(s->tid);
  now = now ? now : s->cpu_ns;
  return now - s->cpu_begin_ns;
}

static int arm(struct ljp_sampler *s)
{
  begin_accounts(s);
  atomic_store(&s->active, true);
  int error = g->source->arm(s, g->options.signal, g->options.wall);
  if (error)
    atomic_store(&s->active, false);
  return error;
}

int ljp_threads_add(pid_t tid, const char *name)
{
  struct ljp_sampler *s = take_free();
  enum ljp_status status = LJP_OK;
  if (!s)
    return ENOMEM;
  memset(&s->counts, 0, sizeof s->counts);
  s->tid = tid;
  s->perf = g->source != &ljp_timer_posix;
  s->ran_lua = false;
  s->fresh = FRESH_ROUNDS;
  s->producer = NULL;
  s->thread = 0;
  snprintf(s->name, sizeof s->name, "%s", name);
  atomic_store(&s->interval_ns, g->options.interval_ns);
  atomic_store(&s->period_ns, g->options.interval_ns);
  atomic_store(&s->interval_why, 0);
  if (g->options.mode != LJP_SAMPLER_COUNT) {
    status = ljp_session_add_thread(g->session, tid, name, &s->thread);
    if (!status)
      status = ljp_session_add_producer(
          g->session, g->options.wall ? LJP_PRODUCER_WALL : LJP_PRODUCER_CPU,
          s->thread, g->options.interval_ns, 0, &s->producer);
  }
  int error = status ? (status == LJP_ERR_MEM ? ENOMEM : EIO) : arm(s);
  s->used = true;
  if (error)
    ljp_threads_drop(s);
  return error;
}

static void add_counts(struct ljp_sysprof_report *to,
                       struct ljp_sampler_counts *from)
{
  to->samples += atomic_load(&from->samples);
  to->lfunc += atomic_load(&from->lfunc);
  to->overruns += atomic_load(&from->overruns);
  to->deferred += atomic_load(&from->deferred);
  to->outside += atomic_load(&from->outside);
  to->idle += atomic_load(&from->idle);
  to->time_ns += atomic_load(&from->time_ns);
  to->handler_ns += atomic_load(&from->handler_ns);
  for (int i = 0; i < LJP_SAMPLER_STATES; i++)
    to->state[i] += atomic_load(&from->state[i]);
  for (int i = 0; i < 16; i++)
    to->cut[i] += atomic_load(&from->cut[i]);
  for (int i = 0; i < LJP_LOSS_COUNT; i++)
    to->lost[i] += atomic_load(&from->lost[i]);
}

void ljp_threads_sum(struct ljp_sysprof_report *out)
{
  FOR_EACH_USED(s)
  add_counts(out, &s->counts);
}

uint64_t ljp_threads_cpu(void)
{
  uint64_t sum = 0;
  FOR_EACH_USED(s)
  sum += cpu_since(s);
  return sum;
}

/* After this no handler uses the sampler. False: one hangs, in the host's own
** backtracer it may be. */
static bool deactivate(struct ljp_sampler *s)
{
  char text[64];
  atomic_store(&s->active, false);
  for (int i = 0; atomic_load(&s->inside); i++) {
    if (i % 100 == 99 && !read_proc(s->tid, "comm", text, sizeof text))
      break; /* it ended there */
    if (i > ROUNDS_TO_WAIT)
      return false;
    usleep(100);
  }
  atomic_store(&s->inside, 0);
  return true;
}

void ljp_threads_drop(struct ljp_sampler *s)
{
  g->source->disarm(s);
  bool quiet = deactivate(s);
  /* A put-off sample that never came. */
  if (s->deferred) {
    atomic_fetch_add(&s->counts.lost[LJP_LOSS_BUSY], s->deferred);
    if (s->producer)
      ljp_count_loss(s->producer, LJP_LOSS_BUSY, s->deferred);
    s->deferred = 0;
  }
  add_counts(&g->ended, &s->counts);
  g->sampled_ns += cpu_since(s);
  if (s->producer && quiet)
    ljp_producer_retire(s->producer);
  if (s->thread)
    ljp_session_end_thread(g->session, s->thread);
  s->producer = quiet ? NULL : s->producer;
  s->used = !quiet; /* one that hangs stays out of use for good */
}

void ljp_threads_drop_all(void)
{
  FOR_EACH_USED(s)
  g->source->disarm(s);
  FOR_EACH_USED(s)
  ljp_threads_drop(s);
}

/* -- All of them ---------------------------------------------------------------- */

static struct ljp_sampler *find(pid_t tid)
{
  FOR_EACH_USED(s)
  if (s->tid == tid)
    return s;
  return NULL;
}

void ljp_threads_meet(pid_t tid)
{
  char name[16];
  struct ljp_sampler *s = find(tid);
  if (s || ljp_threads_blocks(tid, g->options.signal))
    return;
  ljp_threads_name(tid, name);
  ljp_threads_add(tid, name);
}

/* Threads get their names soon after they begin, which is when they are met. */
static void name_again(struct ljp_sampler *s)
{
  char name[16];
  if (!s->fresh || !s->thread)
    return;
  s->fresh--;
  ljp_threads_name(s->tid, name);
  if (!name[0] || strcmp(name, s->name) == 0)
    return;
  memcpy(s->name, name, sizeof name);
  ljp_session_name_thread(g->session, s->thread, name);
}

void ljp_threads_scan(void)
{
  DIR *dir = opendir("/proc/self/task");
  if (!dir)
    return;
  FOR_EACH_USED(s)
  s->seen = false;
  uint32_t blocked = 0;
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
    pid_t tid = (pid_t)atol(entry->d_name);
    if (tid <= 0)
      continue;
    struct ljp_sampler *s = find(tid);
    if (s) {
      s->seen = true;
      name_again(s);
      continue;
    }
    if (g->options.threads == LJP_THREADS_THIS)
      continue;
    char name[16];
    ljp_threads_name(tid, name);
    if (strcmp(name, "ljprof-writer") == 0)
      continue;
    if (ljp_threads_blocks(tid, g->options.signal)) {
      blocked++;
      continue;
    }
    if (ljp_threads_add(tid, name) == 0)
      find(tid)->seen = true;
  }
  closedir(dir);
  g->blocked = blocked;
  FOR_EACH_USED(s)
  if (!s->seen)
    ljp_threads_drop(s);
}

/* -- How often -------------------------------------------------------------------- */

/* The handler puts it into force, with the next signal. */
static void set_interval(struct ljp_sampler *s, uint64_t interval,
                         enum ljp_interval_why why)
{
  atomic_store(&s->interval_ns, interval);
  /* Release: the interval before the reason. */
  atomic_store_explicit(&s->interval_why, why, memory_order_release);
}

void ljp_threads_pace(void)
{
  FOR_EACH_USED(s)
  {
    uint64_t interval = atomic_load(&s->interval_ns);
    uint64_t time = atomic_load(&s->counts.time_ns) - s->throttle_time_ns;
    uint64_t spent =
        atomic_load(&s->counts.handler_ns) - s->throttle_handler_ns;
    double limit = g->options.max_overhead;
    if (limit > 0 && time >= THROTTLE_MIN_NS) {
      double share = (double)spent / (double)time;
      s->throttle_time_ns += time;
      s->throttle_handler_ns += spent;
      if (share > limit && interval < LJP_INTERVAL_MAX_NS / 16) {
        double factor = share / limit * 1.25;
        factor = factor > 16 ? 16 : factor;
        set_interval(s, (uint64_t)((double)interval * factor),
                     LJP_INTERVAL_THROTTLE);
        continue;
      }
      if (interval > g->options.interval_ns && share * 2 < limit * 0.8) {
        uint64_t half = interval / 2;
        if (half < g->options.interval_ns)
          half = g->options.interval_ns;
        set_interval(s, half, LJP_INTERVAL_RECOVER);
        continue;
      }
    }
  }
}

/* -- fork ---------------------------------------------------------------------------- */

void ljp_threads_after_fork(pid_t was, bool recording)
{
  FOR_EACH_USED(s)
  {
    /* The timers are the parent's; a descriptor was inherited. */
    if (s->fd >= 0) {
      if (s->fd < LJP_SAMPLER_FDS)
        atomic_store(&ljp_sampler_of_fd[s->fd], 0);
      close(s->fd);
    }
    s->fd = s->timer[0] = s->timer[1] = s->park = -1;
    atomic_store(&s->active, false);
    atomic_store(&s->inside, 0);
    memset(&s->counts, 0, sizeof s->counts);
    if (!recording || s->tid != was) {
      s->used = false;
      s->producer = NULL;
      continue;
    }
    s->tid = gettid();
    arm(s);
  }
}
