/*
** Events of the trace compiler; see trace_events.h.
*/
#include "profilers/jit/trace_events.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profilers/jit/jitdump.h"
#include "profilers/session/host.h"
#include "profilers/session/stand_in.h"
#include "profilers/session/vms.h"
#include "profilers/unwind/walk.h"
#include "src/luajit/traces.h"
#include "src/base/clock.h"
#include "src/push/event.h"

enum {
  RING_BYTES = 256 << 10,
  EXISTS_BYTES = 96 /* in a ring, of an event without text and stack */
};

static struct {
  pthread_mutex_t lock;
  pid_t pid;                     /* whose lock this is */
  struct ljp_producer *producer; /* NULL: nobody listens */
  uint64_t last_existing;        /* id; told of when the session began */
  uint64_t *frames;              /* LJP_STACK_MAX_FRAMES; never given back */
  struct ljp_memo *memo;
} trace_events = {.lock = PTHREAD_MUTEX_INITIALIZER};
#define t (&trace_events)

static uint64_t place_of(uint32_t ref, uint32_t line)
{
  return ref ? ljp_frame_lua(LJP_FRAME_LUA, 0, ref, line) : 0;
}

/* The code itself, for other profilers. */
static void dump(struct ljp_producer *producer, uint64_t id)
{
  char text[128];
  const char *error = ljp_jitdump_add(id);
  if (!error)
    return;
  snprintf(text, sizeof text, "jitdump ends early: %s", error);
  ljp_push_note(producer, ljp_clock_ns(), LJP_NOTE_ERROR, text);
}

/* -- While it runs ----------------------------------------------------------------- */

/* The program's frames; how many. */
static unsigned walk(struct ljp_regs *regs)
{
  struct ljp_walk walk = {.stack = {.cut = LJP_CUT_ABORTED}};
  struct ljp_unwind *unwind = ljp_host_tables();
  const struct ljp_unwind_map *map = ljp_unwind_acquire(unwind);
  unsigned kept = 0;
  if (map) {
    if (ljp_walk_memo(&walk, map, regs, t->frames, LJP_STACK_MAX_FRAMES - 1,
                      t->memo) != LJP_WALK_DONE)
      walk.stack.cut = LJP_CUT_RESIZE;
    ljp_unwind_release(unwind, map);
  }
  for (uint32_t i = 0; i < walk.stack.count; i++)
    if (ljp_guest_is_frame(t->frames[i]))
      t->frames[kept++] = t->frames[i];
  if (walk.stack.cut)
    t->frames[kept++] = ljp_frame(LJP_FRAME_CUT, 0, walk.stack.cut);
  return kept;
}

static void push(const struct ljp_guest_trace_event *e, struct ljp_regs *regs)
{
  struct ljp_trace_event out = {.what = e->what,
                                .vm = ljp_vms_id(e->vm),
                                .trace = e->trace,
                                .parent = e->parent,
                                .parent_exit = e->parent_exit,
                                .reason = e->reason,
                                .place = place_of(e->place_ref, e->place_line),
                                .text = e->text};
  if (e->what == LJP_TRACE_STOP && e->trace <= t->last_existing)
    return; /* between the two looks of begin */
  if (e->what == LJP_TRACE_ABORT) {
    out.depth = walk(regs);
    out.frames = t->frames;
  }
  out.time_ns = ljp_clock_ns();
  ljp_push_trace(t->producer, &out);
  if (e->what == LJP_TRACE_STOP)
    dump(t->producer, e->trace);
}

static void on_trace(const struct ljp_guest_trace_event *e)
{
  int saved = errno;
  struct ljp_regs regs = {.known = LJP_REGS_CALLEE_SAVED | 1u << LJP_RSP |
                                   1u << LJP_RIP};
  ljp_registers_here(&regs);
  const struct ljp_regs here = regs; /* a walk uses them up */
  const struct ljp_regs *before = ljp_stand_in_regs;
  ljp_stand_in_regs = &here;
  pthread_mutex_lock(&t->lock);
  if (t->producer)
    push(e, &regs);
  pthread_mutex_unlock(&t->lock);
  ljp_stand_in_regs = before;
  errno = saved;
}

/* -- What is there ------------------------------------------------------------------ */

struct ids {
  uint64_t *list;
  size_t count, room;
  bool failed;
};

static void add_id(void *ctx, uint64_t id)
{
  struct ids *ids = ctx;
  if (ids->count == ids->room) {
    size_t room = ids->room ? ids->room * 2 : 256;
    uint64_t *list = realloc(ids->list, room * sizeof *list);
    if (!list) {
      ids->failed = true;
      return;
    }
    ids->list = list;
    ids->room = room;
  }
  ids->list[ids->count++] = id;
}

static int by_id(const void *a, const void *b)
{
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* In a ring of its own that holds them all, and goes with them. */
static bool tell_existing(struct ljp_session *session, struct ids *ids)
{
  struct ljp_guest_trace trace;
  struct ljp_producer *producer;
  uint64_t now = ljp_clock_ns();
  if (!ids->count)
    return true;
  qsort(ids->list, ids->count, sizeof *ids->list, by_id);
  t->last_existing = ids->list[ids->count - 1];
  if (ljp_session_add_producer(session, LJP_PRODUCER_EVENTS, 0, 0,
                               ids->count * EXISTS_BYTES, &producer))
    return false;
  for (size_t i = 0; i < ids->count; i++) {
    if (!ljp_guest_trace(ids->list[i], &trace))
      continue;
    const struct ljp_trace_event e = {
        .time_ns = now,
        .what = LJP_TRACE_EXISTS,
        .vm = ljp_vms_id(trace.vm),
        .trace = trace.id,
        .parent = trace.parent,
        .parent_exit = trace.parent_exit,
        .place = place_of(trace.place_ref, trace.place_line)};
    ljp_push_trace(producer, &e);
    dump(producer, trace.id);
  }
  ljp_producer_retire(producer);
  return true;
}

/* -- Life cycle ---------------------------------------------------------------------- */

static bool make_room(void)
{
  if (!t->frames)
    t->frames = malloc(LJP_STACK_MAX_FRAMES * sizeof *t->frames);
  if (!t->memo)
    t->memo = calloc(1, sizeof *t->memo);
  if (t->memo)
    t->memo->valid = false;
  return t->frames && t->memo;
}

void ljp_trace_events_begin(struct ljp_session *session)
{
  struct ljp_producer *producer = NULL;
  struct ids ids = {0};
  if (t->pid != getpid()) /* in a fork's child somebody may have held it */
    pthread_mutex_init(&t->lock, NULL);
  t->pid = getpid();
  pthread_mutex_lock(&t->lock);
  t->last_existing = 0;
  bool ok =
      make_room() && !ljp_session_add_producer(session, LJP_PRODUCER_EVENTS, 0,
                                               0, RING_BYTES, &producer);
  if (ok) {
    /* First: what ends after the look at what is there is not missed. */
    ljp_guest_listen_traces(on_trace);
    ljp_guest_traces_each(add_id, &ids);
    ok = tell_existing(session, &ids) && !ids.failed;
    t->producer = producer;
  }
  pthread_mutex_unlock(&t->lock);
  free(ids.list);
  if (!ok)
    ljp_session_info(session, "traces", "not all told: out of memory");
}

void ljp_trace_events_end(void)
{
  ljp_guest_listen_traces(NULL);
  pthread_mutex_lock(&t->lock);
  if (t->producer)
    ljp_producer_retire(t->producer);
  t->producer = NULL;
  ljp_jitdump_close(false);
  pthread_mutex_unlock(&t->lock);
}

void ljp_trace_events_forked(struct ljp_session *session)
{
  struct ids ids = {0};
  struct ljp_failure why;
  bool dumps = ljp_jitdump_is_open();
  pthread_mutex_init(&t->lock, NULL);
  t->pid = getpid();
  ljp_jitdump_forked();
  if (!session) {
    ljp_guest_listen_traces(NULL);
    t->producer = NULL;
    return;
  }
  if (t->memo)
    t->memo->valid = false;
  if (dumps && ljp_jitdump_open(&why))
    ljp_session_info(session, "jitdump", why.text);
  ljp_guest_traces_each(add_id, &ids);
  if (t->producer)
    tell_existing(session, &ids);
  free(ids.list);
}
