/*
** See heap_session.h.
*/
#include "profilers/memory/heap_session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profilers/memory/followed.h"
#include "profilers/memory/heap_snapshot.h"
#include "profilers/memory/state.h"
#include "src/base/clock.h"
#include "src/base/futex.h"
#include "src/luajit/snapshot.h"
#include "src/luajit/vms.h"

static struct ljp_memprof *const g = &ljp_memprof;

static void target_lock(void)
{
  ljp_profiler_lock(&g->lock);
}

static void target_unlock(void)
{
  ljp_profiler_unlock(&g->lock);
}

static bool target_runs_locked(const struct ljp_heap_target *target)
{
  return g->running && g->session_number == target->session;
}

static enum ljp_status target_open_locked(struct lua_State *L,
                                          struct ljp_heap_target *target,
                                          struct ljp_failure *why)
{
  const struct ljp_recorder *r = ljp_guest_recorder(L);
  if (!g->running)
    return ljp_fail(why, LJP_ERR_USE, EINVAL,
                    "a heap snapshot without a path goes into the file of the "
                    "running memory session, but none is running: give a path, "
                    "or start misc.memprof before");
  if (g->options.client)
    return ljp_fail(why, LJP_ERR_USE, EBUSY,
                    "the running memory session is that of ljprof (process "
                    "%d), which has joined the program: give the snapshot a "
                    "path of its own",
                    (int)g->options.client);
  if (g->options.output.ljm)
    return ljp_fail(why, LJP_ERR_USE, EINVAL,
                    "a file of format \"ljm\" has no heap snapshots: give the "
                    "snapshot a path of its own");
  if (!r || r->ended || !atomic_load(&r->on))
    return ljp_fail(why, LJP_ERR_LIMIT, EAGAIN,
                    "this VM is not recorded by the running session: give the "
                    "snapshot a path of its own");
  int error = ljp_session_open_scratch(g->session, &target->scratch);
  if (error)
    return ljp_fail(why, LJP_ERR_IO, error,
                    "no file for the heap beside that of the session: %s%s",
                    strerror(error), ljp_errno_advice(error));
  target->told = false;
  target->session = g->session_number;
  target->vm = r->vm;
  target->number = ljp_session_next_snapshot(g->session);
  return LJP_OK;
}

enum ljp_status ljp_heap_target_open(struct lua_State *L,
                                     struct ljp_heap_target *target,
                                     struct ljp_failure *why)
{
  target_lock();
  enum ljp_status status = target_open_locked(L, target, why);
  target_unlock();
  return status;
}

void ljp_heap_target_moment(struct lua_State *L,
                            const struct ljp_heap_target *target)
{
  target_lock();
  struct ljp_recorder *r = ljp_guest_recorder(L);
  if (target_runs_locked(target) && r && !r->ended && atomic_load(&r->on))
    ljp_recorder_moment(r, target->number);
  target_unlock();
}

enum ljp_status ljp_heap_target_join(struct ljp_heap_target *target,
                                     int scratch, struct ljp_failure *why)
{
  enum ljp_status status = LJP_OK;
  target_lock();
  if (!g->running || !g->options.client)
    status = ljp_fail(why, LJP_ERR_USE, EINVAL,
                      "the memory session of this client has ended");
  else
    *target = (struct ljp_heap_target){
        .session = g->session_number,
        .number = ljp_session_next_snapshot(g->session),
        .scratch = scratch,
        .told = true};
  target_unlock();
  return status;
}

bool ljp_heap_target_meet(struct lua_State *L, struct ljp_heap_target *target)
{
  if (!ljp_profiler_trylock(&g->lock))
    return false;
  struct ljp_recorder *r = ljp_guest_recorder(L);
  bool there =
      target_runs_locked(target) && r && !r->ended && atomic_load(&r->on);
  if (there) {
    target->vm = r->vm;
    ljp_recorder_moment(r, target->number);
  }
  target_unlock();
  return there;
}

enum ljp_status ljp_heap_target_append(const struct ljp_heap_target *target,
                                       const struct ljp_session_heap *heap)
{
  target_lock();
  enum ljp_status status = target_runs_locked(target)
                               ? ljp_session_append_heap(g->session, heap)
                               : LJP_ERR_RUN;
  target_unlock();
  return status;
}

void ljp_heap_target_missing(const struct ljp_heap_target *target,
                             const char *why)
{
  char text[256];
  snprintf(text, sizeof text, "heap snapshot %llu is missing: %s",
           (unsigned long long)target->number, why);
  target_lock();
  if (target_runs_locked(target))
    ljp_session_note(g->session,
                     target->told ? LJP_NOTE_WARNING : LJP_NOTE_ERROR, text);
  target_unlock();
}

/* -- The last one ---------------------------------------------------------- */

/* L NULL: at exit(). Is a last snapshot wanted? Then its VM is in *L. */
static bool heap_wants_last(struct lua_State **L,
                            struct ljp_heap_snapshot_options *options)
{
  if (*L)
    target_lock();
  else if (!ljp_profiler_lock_at_exit(&g->lock))
    return false;
  bool wanted = g->running && g->options.snapshot && g->snapshot_main &&
                (!*L || ljp_guest_vm_id(*L) == g->snapshot_vm);
  if (wanted && !*L)
    /* Nobody else runs the VM: only this thread ever has. */
    wanted = g->snapshot_home == &errno && !atomic_load(&g->snapshot_moved) &&
             ljp_guest_settled(g->snapshot_main);
  if (wanted && !*L)
    *L = ljp_guest_running(g->snapshot_main);
  if (wanted)
    g->snapshot_main = NULL; /* One is enough. */
  options->text_limit = g->options.snapshot_text;
  target_unlock();
  return wanted;
}

static enum ljp_status heap_last(struct lua_State *L, struct ljp_failure *why)
{
  struct ljp_heap_snapshot_options options;
  struct ljp_snapshot_result result;
  ljp_heap_snapshot_options_init(&options);
  bool wanted = heap_wants_last(&L, &options);
  ljp_heap_snapshot_await();
  options.wait = true;
  return wanted ? ljp_heap_snapshot(L, &options, &result, why) : LJP_OK;
}

enum ljp_status ljp_heap_session_last(struct lua_State *L,
                                      struct ljp_failure *why)
{
  return heap_last(L, why);
}

void ljp_heap_session_exit(void)
{
  heap_last(NULL, NULL); /* The stream has a note. */
}

/* -- At other times -------------------------------------------------------- */

/* Is a snapshot of this VM due? Sets when the next one is. */
static bool heap_is_due(const struct ljp_recorder *r,
                        struct ljp_heap_snapshot_options *options)
{
  uint64_t at = ljp_clock_ns();
  uint64_t due = atomic_load(&g->snapshot_due_ns);
  if (!due || at < due || !ljp_profiler_trylock(&g->lock))
    return false;
  bool wanted = g->running && !r->ended && r->number == g->snapshot_vm;
  if (wanted) {
    bool last = due == LJP_SNAPSHOT_NOW;
    if (last)
      g->snapshot_main = NULL;
    options->text_limit = g->options.snapshot_text;
    atomic_store(&g->snapshot_due_ns, last ? 0 : at + g->options.snapshot_ns);
  }
  target_unlock();
  return wanted;
}

void ljp_heap_session_phase(struct lua_State *L)
{
  const struct ljp_recorder *r = ljp_guest_recorder(L);
  struct ljp_heap_snapshot_options options;
  struct ljp_snapshot_result result;
  int *error = &errno, saved = *error;
  if (ljp_guest_gc_phase(&r->heap) != LJP_GC_SWEEPSTRING ||
      ljp_guest_compiled(L))
    return;
  ljp_heap_snapshot_options_init(&options);
  if (heap_is_due(r, &options))
    ljp_heap_snapshot(ljp_guest_running(L), &options, &result, NULL);
  *error = saved;
}

void ljp_heap_session_expire(void)
{
  enum { TRIES = 200, PAUSE_NS = 10000000 };
  _Atomic uint32_t never = 0;
  target_lock();
  bool wanted = g->running && g->options.snapshot && g->snapshot_main;
  if (wanted)
    atomic_store(&g->snapshot_due_ns, LJP_SNAPSHOT_NOW);
  target_unlock();
  for (int i = 0; wanted && i < TRIES &&
                  atomic_load(&g->snapshot_due_ns) == LJP_SNAPSHOT_NOW;
       i++)
    ljp_futex_wait(&never, 0, PAUSE_NS);
  target_lock();
  if (wanted && g->running &&
      atomic_load(&g->snapshot_due_ns) == LJP_SNAPSHOT_NOW)
    ljp_session_note(g->session, LJP_NOTE_WARNING,
                     "no heap snapshot at the end of the session's duration: "
                     "the VM's collector has not come to the end of a mark "
                     "phase within two seconds");
  atomic_store(&g->snapshot_due_ns, 0);
  target_unlock();
  ljp_heap_snapshot_await();
}
