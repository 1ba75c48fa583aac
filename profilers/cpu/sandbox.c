/*
** Has the program gone into a sandbox since the session began? See state.h.
*/
#include "profilers/cpu/proc_task.h"
#include "profilers/cpu/state.h"

static struct ljp_sysprof *const g = &ljp_sysprof;

void ljp_sandbox_begin(void)
{
  g->filtered = ljp_task_is_filtered();
  g->jailed = false;
}

bool ljp_sandbox_began(void)
{
  if (g->jailed || g->filtered || !g->running)
    return g->jailed;
  g->jailed = ljp_task_is_filtered();
  if (g->jailed)
    ljp_session_note(
        g->session, LJP_NOTE_WARNING,
        "all threads are in a sandbox from here on: new threads are "
        "not sampled, and intervals do not change");
  return g->jailed;
}
