/*
** See stacks_read.h.
*/
#include "profilers/join/stacks_read.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profilers/cpu/watch_place.h"
#include "profilers/session/host.h"
#include "profilers/unwind/walk.h"
#include "src/base/join_stacks.h"
#include "src/base/own_proc.h"

/* -- Locals ---------------------------------------------------------------- */

struct locals {
  struct ljp_read_stack *stack;
  uint32_t frame;
};

static void locals_add(void *ctx, const char *name, const char *value)
{
  const struct locals *l = ctx;
  struct ljp_read_stack *s = l->stack;
  char *at = s->locals + s->locals_bytes;
  size_t room = sizeof s->locals - s->locals_bytes;
  int n = snprintf(at, room, "%u%c%s%c%s", l->frame, 0, name, 0, value);
  if (n > 0 && (size_t)n < room)
    s->locals_bytes += (uint32_t)n + 1;
}

/* Are these words about the same function? */
static bool locals_same(uint64_t a, uint64_t b)
{
  bool lua = ljp_frame_shape(ljp_frame_kind(a)) == LJP_SHAPE_LUA;
  return ljp_frame_kind(a) == ljp_frame_kind(b) &&
         (lua ? ljp_frame_proto_ref(a) == ljp_frame_proto_ref(b)
              : ljp_frame_payload(a) == ljp_frame_payload(b));
}

/* The walk has found frames, and the Lua thread's own stack has some of them: as
** far as the two agree, the locals are those of the walk's frames. */
static void locals_of(struct ljp_read_stack *s, const struct ljp_lua_from *from)
{
  struct ljp_lua_frame frames[LJP_STACK_LUA_FRAMES];
  enum ljp_cut cut;
  uint32_t n = ljp_lua_frames(from, frames, LJP_STACK_LUA_FRAMES, &cut);
  uint32_t at = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t found = at;
    while (found < s->count && !locals_same(frames[i].word, s->frames[found]))
      found++;
    if (found == s->count)
      continue;
    struct locals l = {s, found};
    ljp_lua_locals(&frames[i], locals_add, &l);
    at = found + 1;
  }
}

/* -- Gaps ------------------------------------------------------------------ */

/* The end of the mapping that holds an address; 0: there is none. */
static uint64_t gap_mapping_end(uint64_t address)
{
  char text[4096];
  size_t have = 0;
  uint64_t end = 0;
  ssize_t n;
  int fd = ljp_own_proc_open("maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return 0;
  while (!end && (n = read(fd, text + have, sizeof text - 1 - have)) > 0) {
    char *at = text, *next;
    have += (size_t)n;
    text[have] = '\0';
    for (; !end && (next = strchr(at, '\n')) != NULL; at = next + 1) {
      uint64_t low = strtoull(at, &at, 16), high = strtoull(at + 1, NULL, 16);
      if (address >= low && address < high)
        end = high;
    }
    have -= (size_t)(at - text);
    if (have == sizeof text - 1) /* a path that is too long */
      break;
    memmove(text, at, have);
  }
  close(fd);
  return end;
}

/* A thread that waits has lost its other registers: the walk may end at a C
** function that needs one. It goes on where Lua has called that function. */
static void gap_cross(struct ljp_read_stack *out, struct ljp_walk *walk,
                      const struct ljp_unwind_map *map, uint64_t rsp)
{
  enum { LEAST = 64 };
  struct ljp_unwind_room room;
  struct ljp_regs regs;
  uint64_t high = gap_mapping_end(rsp);
  uint32_t count = out->count;
  if (!high || count > LJP_STACK_MAX_FRAMES - LEAST ||
      !ljp_lua_return(rsp, high, &regs))
    return;
  out->frames[count++] = ljp_frame(LJP_FRAME_CUT, 0, (uint64_t)out->cut);
  regs.room = &room;
  if (ljp_walk(walk, map, &regs, out->frames + count,
               LJP_STACK_MAX_FRAMES - count) != LJP_WALK_DONE ||
      !walk->guest.vm)
    return;
  out->count = count + walk->stack.count;
  out->cut = walk->stack.cut;
}

/* -- Threads --------------------------------------------------------------- */

void ljp_read_thread(struct ljp_read_stack *out, const struct ljp_regs *from,
                     bool locals)
{
  struct ljp_unwind *tables = ljp_host_tables();
  const struct ljp_unwind_map *map = ljp_unwind_acquire(tables);
  struct ljp_unwind_room room;
  struct ljp_regs regs = *from;
  struct ljp_lua_from lua;
  struct ljp_walk walk;
  out->count = out->locals_bytes = 0;
  out->vm = 0;
  out->state = LJP_VMSTATE_UNKNOWN;
  out->cut = LJP_CUT_ABORTED;
  if (!map)
    return;
  regs.room = &room;
  enum ljp_walk_result result =
      ljp_walk(&walk, map, &regs, out->frames, LJP_STACK_MAX_FRAMES);
  out->count = walk.stack.count;
  out->cut = result == LJP_WALK_DEFER ? LJP_CUT_RESIZE : walk.stack.cut;
  if (out->cut && !walk.guest.vm && result == LJP_WALK_DONE)
    gap_cross(out, &walk, map, from->r[LJP_RSP]);
  ljp_unwind_release(tables, map);
  out->vm = walk.guest.vm;
  out->state = walk.guest.state;
  if (locals && walk.guest.g && ljp_lua_running(walk.guest.g, from, &lua))
    locals_of(out, &lua);
}

void ljp_read_waiting(struct ljp_read_stack *out, int tid, bool locals)
{
  enum { LOOKS = 5, PAUSE_US = 1000 };
  struct ljp_regs regs, again;
  out->flags = 0;
  out->count = out->locals_bytes = out->vm = 0;
  out->cut = LJP_CUT_NONE;
  out->state = LJP_VMSTATE_UNKNOWN;
  for (int i = 0; i < LOOKS; i++) {
    if (i)
      usleep(PAUSE_US);
    enum ljp_task_state state = ljp_task_place(tid, &regs);
    out->flags = LJP_STACKS_RUNS;
    if (state == LJP_TASK_UNREADABLE)
      return;
    if (state == LJP_TASK_RUNS)
      continue;
    ljp_read_thread(out, &regs, locals);
    out->state = LJP_VMSTATE_WAITING;
    out->flags = LJP_STACKS_CHANGING;
    if (ljp_task_place(tid, &again) != LJP_TASK_WAITS ||
        memcmp(regs.r, again.r, sizeof regs.r) != 0)
      continue;
    out->flags = 0;
    return;
  }
}

/* -- Coroutines ------------------------------------------------------------ */

static void read_once(struct ljp_read_stack *out,
                      const struct ljp_lua_coroutine *coroutine, bool locals)
{
  struct ljp_lua_frame frames[LJP_STACK_LUA_FRAMES];
  const struct ljp_lua_from from = {.L = coroutine->L};
  out->count = ljp_lua_frames(&from, frames, LJP_STACK_LUA_FRAMES, &out->cut);
  out->locals_bytes = 0;
  for (uint32_t i = 0; i < out->count; i++) {
    struct locals l = {out, i};
    out->frames[i] = frames[i].word;
    if (locals)
      ljp_lua_locals(&frames[i], locals_add, &l);
  }
  if (!coroutine->started) {
    out->frames[0] = coroutine->function;
    out->count = 1;
  }
}

void ljp_read_coroutine(struct ljp_read_stack *out,
                        const struct ljp_lua_coroutine *coroutine, bool locals)
{
  uint64_t before[LJP_STACK_LUA_FRAMES];
  out->tid = 0;
  out->vm = coroutine->vm;
  out->state = LJP_VMSTATE_UNKNOWN;
  read_once(out, coroutine, locals);
  uint32_t count = out->count;
  memcpy(before, out->frames, count * sizeof *before);
  read_once(out, coroutine, locals);
  out->flags = count == out->count &&
                       !memcmp(before, out->frames, count * sizeof *before)
                   ? 0
                   : LJP_STACKS_CHANGING;
}
