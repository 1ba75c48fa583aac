/*
** Time that no sample stands for; see unsampled.h.
*/
#include "profilers/cpu/unsampled.h"

#include <stdio.h>
#include <stdlib.h>

#include "profilers/cpu/state.h"
#include "profilers/cpu/threads.h"
#include "src/base/clock.h"

enum {
  TELL_NS = 1000000, /* less is told later */
  REST_NS = 10000000
};

static struct ljp_sysprof *const g = &ljp_sysprof;
static struct ljp_unsampled_threads *const all = &ljp_sysprof.unsampled;

void ljp_unsampled_begin(void)
{
  all->count = 0;
  all->told_ns = all->rest_ns = 0;
}

uint64_t ljp_unsampled_clock(pid_t tid)
{
  uint64_t cpu = ljp_clock_of(ljp_task_cpu_clock(tid));
  return g->options.wall && cpu ? ljp_clock_ns() : cpu;
}

void ljp_unsampled_tell(uint32_t thread, enum ljp_unsampled why, uint64_t ns)
{
  /* Elapsed time of our own threads is nobody's. */
  if (g->options.wall && why == LJP_UNSAMPLED_WRITER)
    return;
  if (ns && g->options.mode != LJP_SAMPLER_COUNT)
    ljp_session_unsampled(
        g->session, thread,
        g->options.wall ? LJP_PRODUCER_WALL : LJP_PRODUCER_CPU, why, ns);
}

void ljp_unsampled_elapsed(uint32_t thread, uint64_t life_ns, uint64_t end_ns)
{
  if (g->options.wall && thread && end_ns > life_ns)
    ljp_session_elapsed(g->session, thread, end_ns - life_ns);
}

static void unsampled_tell_thread(struct ljp_unsampled_thread *t, bool finish)
{
  uint64_t now = ljp_unsampled_clock(t->tid);
  if (now < t->told_ns || now - t->told_ns < (finish ? 1 : TELL_NS))
    return;
  /* See ljp_unsampled_tell(). */
  bool nobody = g->options.wall && t->why == LJP_UNSAMPLED_WRITER;
  if (!t->thread && !nobody && g->options.mode != LJP_SAMPLER_COUNT &&
      ljp_session_add_thread(g->session, t->tid, t->name, &t->thread))
    return;
  ljp_unsampled_tell(t->thread, t->why, now - t->told_ns);
  all->told_ns += now - t->told_ns;
  t->told_ns = now;
}

struct ljp_unsampled_thread *ljp_unsampled_find(pid_t tid)
{
  for (uint32_t i = 0; i < all->count; i++)
    if (all->list[i].tid == tid)
      return &all->list[i];
  return NULL;
}

/* The thread has ended. */
static void unsampled_end(const struct ljp_unsampled_thread *t)
{
  ljp_unsampled_elapsed(t->thread, t->life_ns, t->told_ns);
  if (t->thread)
    ljp_session_end_thread(g->session, t->thread);
}

static void unsampled_remove(struct ljp_unsampled_thread *t)
{
  *t = all->list[--all->count];
}

static struct ljp_unsampled_thread *unsampled_add(void)
{
  if (all->count == all->room) {
    uint32_t room = all->room ? 2 * all->room : 16;
    void *list = realloc(all->list, room * sizeof *all->list);
    if (!list)
      return NULL;
    all->list = list;
    all->room = room;
  }
  return &all->list[all->count++];
}

void ljp_unsampled_see(pid_t tid, const char *name, uint32_t thread,
                       enum ljp_unsampled why, uint64_t from_ns)
{
  struct ljp_unsampled_thread *t = ljp_unsampled_find(tid);
  uint64_t now = ljp_unsampled_clock(tid);
  if (t && now && now < t->told_ns) { /* another thread has its number now */
    unsampled_end(t);
    unsampled_remove(t);
    t = NULL;
  }
  /* The clock of a thread that has not run yet is 0, as if it had ended. */
  if (g->options.wall && !from_ns)
    from_ns = ljp_clock_ns();
  if (!t && (t = unsampled_add()) != NULL)
    *t = (struct ljp_unsampled_thread){.tid = tid,
                                       .thread = thread,
                                       .why = why,
                                       .told_ns = from_ns,
                                       .life_ns = from_ns};
  if (!t)
    return;
  snprintf(t->name, sizeof t->name, "%s", name);
  if (why == LJP_UNSAMPLED_WRITER && t->why != why) {
    /* It was not known to be ours. What was told of it stands; no more elapsed
    ** time of it is anybody's. */
    if (g->options.wall) {
      unsampled_end(t);
      t->thread = 0;
    }
    t->why = why;
  }
  unsampled_tell_thread(t, t->why != why);
  t->why = why;
}

bool ljp_unsampled_again(struct ljp_unsampled_thread *t, uint64_t cpu_ns)
{
  bool blocks = t->why == LJP_UNSAMPLED_BLOCKED && g->armed;
  if (t->why != LJP_UNSAMPLED_WRITER && !(blocks && t->met_cpu_ns == cpu_ns))
    return false;
  g->blocked += blocks;
  unsampled_tell_thread(t, false);
  return true;
}

uint32_t ljp_unsampled_living(void)
{
  uint32_t living = 0;
  for (uint32_t i = 0; i < all->count; i++)
    living += ljp_clock_of(ljp_task_cpu_clock(all->list[i].tid)) != 0;
  return living;
}

bool ljp_unsampled_leave(pid_t tid, struct ljp_unsampled_thread *was)
{
  struct ljp_unsampled_thread *t = ljp_unsampled_find(tid);
  if (!t)
    return false;
  unsampled_tell_thread(t, true);
  *was = *t;
  unsampled_remove(t);
  return true;
}

void ljp_unsampled_forget_ended(void)
{
  for (uint32_t i = all->count; i--;) {
    struct ljp_unsampled_thread *t = &all->list[i];
    if (ljp_unsampled_clock(t->tid))
      continue;
    unsampled_end(t);
    unsampled_remove(t);
  }
}

void ljp_unsampled_finish(void)
{
  for (uint32_t i = 0; i < all->count; i++) {
    struct ljp_unsampled_thread *t = &all->list[i];
    unsampled_tell_thread(t, true);
    ljp_unsampled_elapsed(t->thread, t->life_ns, t->told_ns);
  }
  all->count = 0;
  if (g->refusals > 1) {
    char text[100];
    snprintf(text, sizeof text,
             "in all, %u threads could not have timer \"%s\"", g->refusals,
             g->source->name);
    ljp_session_note(g->session, LJP_NOTE_WARNING, text);
  }
}

void ljp_unsampled_rest(uint64_t process_ns, bool finish)
{
  uint64_t known = g->sampled_ns + ljp_threads_cpu_ns() + all->told_ns;
  uint64_t rest = process_ns - g->process_ns;
  rest = rest > known ? rest - known : 0;
  if (g->options.wall || rest < all->rest_ns + (finish ? 1 : REST_NS))
    return;
  ljp_unsampled_tell(
      0, g->no_list ? LJP_UNSAMPLED_NO_LIST : LJP_UNSAMPLED_NOT_FOUND,
      rest - all->rest_ns);
  all->rest_ns = rest;
}
