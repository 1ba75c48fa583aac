/*
** Events of the trace compiler; see trace_events.h.
**
** Invariant: the lock guards everything below except `pid`. It is held during a
** walk and a push, and while a new session collects the existing traces.
*/
#include "profilers/jit/trace_events.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profilers/jit/jitdump.h"
#include "profilers/session/host.h"
#include "profilers/session/stand_in.h"
#include "profilers/session/vms.h"
#include "profilers/unwind/walk.h"
#include "src/luajit/traces.h"
#include "src/base/assert.h"
#include "src/base/cancel.h"
#include "src/base/clock.h"
#include "src/push/event.h"

enum {
  RING_BYTES = 256 << 10,
  EXISTS_BYTES = 96 /* in a ring, of an event without text and stack */
};

static struct {
  pthread_mutex_t lock;
  pid_t pid;                     /* the process that the lock belongs to */
  struct ljp_producer *producer; /* NULL: no session records */
  uint64_t last_existing;        /* largest id that existed at the start */
  uint64_t *frames;              /* LJP_STACK_MAX_FRAMES, while it records */
  struct ljp_memo *memo;         /* the same */
  struct ljp_unwind_room room;
  bool ends_dump; /* the writer is to end the jitdump */
} trace_events = {.lock = PTHREAD_MUTEX_INITIALIZER};
#define g (&trace_events)

static uint64_t events_place(uint32_t ref, uint32_t line)
{
  return ref ? ljp_frame_lua(LJP_FRAME_LUA, 0, ref, line) : 0;
}

/* Writes the code itself for other profilers, if the session asks for it. */
static void events_dump_code(struct ljp_producer *producer, uint64_t id)
{
  char text[128];
  const char *error = ljp_jitdump_add(id);
  if (!error)
    return;
  snprintf(text, sizeof text, "jitdump ends early: %s", error);
  ljp_push_note(producer, ljp_clock_ns(), LJP_NOTE_ERROR, text);
}

/* -- While a session runs -------------------------------------------------- */
/* Fills the frames with the guest's frames of the compiling thread. Returns
** their number. */
static unsigned events_walk(struct ljp_regs *regs)
{
  struct ljp_walk walk = {.stack = {.cut = LJP_CUT_ABORTED}};
  struct ljp_unwind *unwind = ljp_host_tables();
  const struct ljp_unwind_map *map = ljp_unwind_acquire(unwind);
  unsigned kept = 0;
  regs->room = &g->room;
  if (map) {
    if (ljp_walk_memo(&walk, map, regs, g->frames, LJP_STACK_MAX_FRAMES - 1,
                      g->memo) != LJP_WALK_DONE)
      walk.stack.cut = LJP_CUT_RESIZE;
    ljp_unwind_release(unwind, map);
  }
  for (uint32_t i = 0; i < walk.stack.count; i++)
    if (ljp_guest_is_frame(g->frames[i]))
      g->frames[kept++] = g->frames[i];
  ljp_assert(kept < LJP_STACK_MAX_FRAMES);
  if (walk.stack.cut)
    g->frames[kept++] = ljp_frame(LJP_FRAME_CUT, 0, walk.stack.cut);
  return kept;
}

static void events_push(const struct ljp_guest_trace_event *e,
                        struct ljp_regs *regs)
{
  struct ljp_trace_event out = {.what = e->what,
                                .vm = ljp_vms_id(e->vm),
                                .trace = e->trace,
                                .parent = e->parent,
                                .parent_exit = e->parent_exit,
                                .reason = e->reason,
                                .place =
                                    events_place(e->place_ref, e->place_line),
                                .text = e->text};
  if (e->what == LJP_TRACE_STOP && e->trace <= g->last_existing)
    return; /* finished during begin, which has pushed it already */
  if (e->what == LJP_TRACE_ABORT) {
    out.depth = events_walk(regs);
    out.frames = g->frames;
  }
  out.time_ns = ljp_clock_ns();
  ljp_push_trace(g->producer, &out);
  if (e->what == LJP_TRACE_STOP)
    events_dump_code(g->producer, e->trace);
}

static void events_on_trace(const struct ljp_guest_trace_event *e)
{
  int saved = errno;
  struct ljp_regs regs = {.known = LJP_REGS_CALLEE_SAVED | 1u << LJP_RSP |
                                   1u << LJP_RIP};
  ljp_registers_here(&regs);
  const struct ljp_regs here = regs; /* a walk changes its registers */
  const struct ljp_regs *before = ljp_stand_in_regs;
  ljp_stand_in_regs = &here;
  ljp_cancel_off();
  pthread_mutex_lock(&g->lock);
  if (g->producer)
    events_push(e, &regs);
  pthread_mutex_unlock(&g->lock);
  ljp_cancel_on();
  ljp_stand_in_regs = before;
  errno = saved;
}

/* -- Existing traces ------------------------------------------------------- */
struct ids {
  uint64_t *list;
  size_t count, room;
  bool failed;
};

static void events_add_id(void *ctx, uint64_t id)
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

static int events_by_id(const void *a, const void *b)
{
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* Pushes the existing traces by a producer of their own, whose ring has room
** for all of them. */
static bool events_push_existing(struct ljp_session *session, struct ids *ids)
{
  struct ljp_guest_trace trace;
  struct ljp_producer *producer;
  uint64_t now = ljp_clock_ns();
  if (!ids->count)
    return true;
  qsort(ids->list, ids->count, sizeof *ids->list, events_by_id);
  g->last_existing = ids->list[ids->count - 1];
  if (ljp_session_add_producer(session, LJP_PRODUCER_EVENTS, 0, 0,
                               ids->count * EXISTS_BYTES, &producer))
    return false;
  ljp_producer_let_fill(producer);
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
        .place = events_place(trace.place_ref, trace.place_line)};
    ljp_push_trace(producer, &e);
    events_dump_code(producer, trace.id);
  }
  ljp_producer_retire(producer);
  return true;
}

/* -- Life cycle ------------------------------------------------------------ */
static bool events_make_room(void)
{
  if (!g->frames)
    g->frames = malloc(LJP_STACK_MAX_FRAMES * sizeof *g->frames);
  if (!g->memo)
    g->memo = calloc(1, sizeof *g->memo);
  if (g->memo)
    g->memo->valid = false;
  return g->frames && g->memo;
}

/* A listener that comes late finds no producer, and so needs neither. */
static void events_free_room(void)
{
  free(g->frames);
  free(g->memo);
  g->frames = NULL;
  g->memo = NULL;
}

void ljp_trace_events_begin(struct ljp_session *session)
{
  struct ljp_producer *producer = NULL;
  struct ids ids = {0};
  if (g->pid != getpid()) /* a thread of the parent may have held it */
    pthread_mutex_init(&g->lock, NULL);
  g->pid = getpid();
  pthread_mutex_lock(&g->lock);
  g->last_existing = 0;
  bool ok = events_make_room() &&
            !ljp_session_add_producer(session, LJP_PRODUCER_EVENTS, 0, 0,
                                      RING_BYTES, &producer);
  ljp_assert(!g->producer);
  if (ok) {
    /* The listener is set before the existing traces are collected, so that no
    ** trace is missed in between. */
    ljp_guest_listen_traces(events_on_trace);
    ljp_guest_traces_each(events_add_id, &ids);
    ok = events_push_existing(session, &ids) && !ids.failed;
    g->producer = producer;
  }
  pthread_mutex_unlock(&g->lock);
  free(ids.list);
  if (!ok)
    ljp_session_info(session, "traces", "not all are described: out of memory");
}

bool ljp_trace_events_mark(const char *name, size_t bytes)
{
  pthread_mutex_lock(&g->lock);
  bool pushed = g->producer && ljp_push_mark(g->producer, ljp_clock_ns(), 0, 0,
                                             0, name, bytes);
  pthread_mutex_unlock(&g->lock);
  return pushed;
}

void ljp_trace_events_round(void)
{
  char text[128];
  pthread_mutex_lock(&g->lock);
  bool some = ljp_jitdump_take(g->ends_dump);
  g->ends_dump = false;
  pthread_mutex_unlock(&g->lock);
  if (!some)
    return;
  int error = ljp_jitdump_write();
  pthread_mutex_lock(&g->lock);
  const char *why = ljp_jitdump_wrote(error);
  if (why && g->producer) {
    snprintf(text, sizeof text, "jitdump ends early: %s", why);
    ljp_push_note(g->producer, ljp_clock_ns(), LJP_NOTE_ERROR, text);
  }
  pthread_mutex_unlock(&g->lock);
}

const char *ljp_trace_events_dump_error(void)
{
  pthread_mutex_lock(&g->lock);
  const char *error = ljp_jitdump_error();
  pthread_mutex_unlock(&g->lock);
  return error;
}

void ljp_trace_events_settle(struct ljp_session *session)
{
  enum { TURNS = 100, TURN_NS = 5000000 };
  const struct timespec turn = {.tv_nsec = TURN_NS};
  bool waits = true;
  for (int i = 0; i < TURNS && waits; i++) {
    pthread_mutex_lock(&g->lock);
    waits = g->ends_dump = ljp_jitdump_waits();
    pthread_mutex_unlock(&g->lock);
    if (!waits)
      return;
    ljp_session_wake(session);
    nanosleep(&turn, NULL);
  }
}

void ljp_trace_events_end(bool undo)
{
  ljp_guest_listen_traces(NULL);
  pthread_mutex_lock(&g->lock);
  if (g->producer)
    ljp_producer_retire(g->producer);
  g->producer = NULL;
  events_free_room();
  ljp_jitdump_close(undo);
  pthread_mutex_unlock(&g->lock);
}

void ljp_trace_events_forked(struct ljp_session *session)
{
  struct ids ids = {0};
  struct ljp_failure why;
  bool dumps = ljp_jitdump_is_open();
  pthread_mutex_init(&g->lock, NULL);
  g->pid = getpid();
  ljp_jitdump_forked();
  if (!session) {
    ljp_guest_listen_traces(NULL);
    g->producer = NULL;
    return;
  }
  if (g->memo)
    g->memo->valid = false;
  if (dumps && ljp_jitdump_open(NULL, &why))
    ljp_session_info(session, "jitdump", why.text);
  ljp_guest_traces_each(events_add_id, &ids);
  if (g->producer)
    events_push_existing(session, &ids);
  free(ids.list);
}
