/*
** CPU time of the process during a session: what it used, and what no sample
** stands for; see state.h. Under the CPU profiler's lock.
*/
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "profilers/cpu/state.h"
#include "profilers/cpu/threads.h"
#include "src/base/clock.h"

static struct ljp_sysprof *const g = &ljp_sysprof;

void ljp_accounts_begin(void)
{
  /* First: what is known is never less than the process has used. */
  g->starter_ns = ljp_unsampled_clock(gettid());
  g->process_ns = ljp_clock_of(CLOCK_PROCESS_CPUTIME_ID);
  g->writer_cpu_ns = g->sampled_ns = g->told_ns = g->look_ns = 0;
  g->no_list = g->counted = false;
  g->missed = false; /* The last rounds of a session always are. */
  g->writer_tid = 0;
  ljp_unsampled_begin();
}

uint64_t ljp_sysprof_unsampled_ns(void)
{
  uint64_t all = ljp_clock_of(CLOCK_PROCESS_CPUTIME_ID) - g->process_ns;
  uint64_t known = g->sampled_ns + ljp_threads_cpu_ns() + g->writer_cpu_ns;
  return all > known ? all - known : 0;
}

/* Reports what the process has used: ns, if that is much more than was reported. */
static void accounts_tell(uint64_t ns, bool end)
{
  enum { STEP_NS = 10000000 };
  if (g->options.wall || g->options.mode == LJP_SAMPLER_COUNT ||
      (!end && ns < g->told_ns + STEP_NS))
    return;
  if (!ljp_session_cpu_time(g->session, ns - g->told_ns))
    g->told_ns = ns;
}

void ljp_accounts_round(bool all)
{
  accounts_tell(ljp_clock_of(CLOCK_PROCESS_CPUTIME_ID) - g->process_ns, all);
}

/* Threads go on when their samplers have been dropped. With hundreds of them the
** end takes a while. */
static void accounts_tell_last(uint64_t ns, uint64_t end_ns)
{
  uint64_t known = g->sampled_ns + ljp_threads_cpu_ns() + g->unsampled.told_ns +
                   g->unsampled.rest_ns;
  uint64_t rest = ns > known ? ns - known : 0;
  uint64_t most =
      ns > end_ns - g->process_ns ? ns - (end_ns - g->process_ns) : 0;
  if (!g->options.wall)
    ljp_unsampled_tell(0, LJP_UNSAMPLED_LAST, rest < most ? rest : most);
}

void ljp_accounts_end(uint64_t end_ns)
{
  char text[32];
  uint64_t ns = ljp_clock_of(CLOCK_PROCESS_CPUTIME_ID) - g->process_ns;
  g->ended.unsampled_ns = ljp_sysprof_unsampled_ns();
  accounts_tell_last(ns, end_ns);
  accounts_tell(ns, true);
  snprintf(text, sizeof text, "%" PRIu64, g->ended.unsampled_ns);
  ljp_session_info(g->session, "cpu.unsampled_ns", text);
}
