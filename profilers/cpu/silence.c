/*
** Silence: why a thread that works gets no signals any more; see threads.h.
*/
#include "profilers/cpu/proc_task.h"
#include "profilers/cpu/state.h"
#include "profilers/cpu/threads.h"

enum { SILENT_PERIODS = 4 };

/* Changes with each signal that the handler has got. */
static uint64_t silence_progress(const struct ljp_sampler *s)
{
  const struct ljp_sampler_counts *c = &s->counts;
  return atomic_load(&c->time_ns) + atomic_load(&c->lost_ns) +
         atomic_load(&c->outside_ns) + atomic_load(&c->idle) +
         atomic_load(&c->overruns) + atomic_load(&c->lost[LJP_LOSS_THROTTLE]);
}

/* Does the thread block the signal? In our handler the kernel does that. A
** handler may begin or end while we look, and has set nothing in its first
** instructions, so the answer counts only if the next look gives it again. */
static bool silence_blocks(struct ljp_sampler *s, uint64_t progress)
{
  struct ljp_task_look look = {0, 0};
  bool blocks = !atomic_load(&s->inside) &&
                ljp_task_mask(s->tid, ljp_sysprof.options.signal, 1, &look) ==
                    LJP_TASK_BLOCKS &&
                !atomic_load(&s->inside) && silence_progress(s) == progress;
  bool again = blocks && s->looked_blocked;
  s->looked_blocked = blocks;
  return again;
}

/* As long as the silence is short, the times of the last look stay, so that the
** silence adds up. */
enum ljp_unsampled ljp_threads_silence(struct ljp_sampler *s, uint64_t cpu_ns)
{
  uint64_t progress = silence_progress(s), used = cpu_ns - s->looked_cpu_ns;
  bool silent = progress == s->looked_progress;
  if (silent && used < SILENT_PERIODS * atomic_load(&s->interval_ns))
    return 0;
  s->looked_cpu_ns = cpu_ns;
  s->looked_progress = progress;
  s->looked_blocked &= silent;
  if (silent && silence_blocks(s, progress))
    return LJP_UNSAMPLED_BLOCKED;
  return silent && s->source->lives && !s->source->lives(s)
             ? LJP_UNSAMPLED_NO_TIMER
             : 0;
}
