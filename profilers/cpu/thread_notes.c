/*
** What a session's file tells about its threads; see threads.h.
*/
#include <stdio.h>
#include <string.h>

#include "profilers/cpu/state.h"
#include "profilers/cpu/threads.h"

static struct ljp_sysprof *const g = &ljp_sysprof;

void ljp_threads_note_refusal(const struct ljp_sampler *s)
{
  char text[200];
  if (g->refusals++)
    return;
  snprintf(text, sizeof text,
           "thread %d (%s) cannot have timer \"%s\" (%s): it is sampled by "
           "timer \"%s\", at most every %.0f ms",
           (int)s->tid, s->name, g->source->name, strerror(s->refused),
           s->source->name, (double)ljp_timer_tick_ns() / 1e6);
  ljp_session_note(g->session, LJP_NOTE_WARNING, text);
}

void ljp_threads_note_hanging(const struct ljp_sampler *s)
{
  char text[160];
  snprintf(
      text, sizeof text,
      "a signal handler in thread %d (%s) did not return: the thread is no "
      "longer sampled, and its last samples are missing",
      (int)s->tid, s->name);
  ljp_session_note(g->session, LJP_NOTE_WARNING, text);
}
