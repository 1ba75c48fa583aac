/*
** See watch_place.h.
*/
#include "profilers/cpu/watch_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profilers/cpu/sample_stack.h"
#include "src/base/assert.h"
#include "src/base/own_proc.h"
#include "src/base/saferead.h"

/* Reads a file of the thread as a string; of a longer file its end, at least
** half of the room. False: it cannot be read, or is empty. */
static bool place_read(pid_t tid, const char *file, char *out, size_t room)
{
  char name[48];
  size_t have = 0;
  ssize_t n;
  snprintf(name, sizeof name, "task/%ld/%s", (long)tid, file);
  int fd = ljp_own_proc_open(name, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  while ((n = read(fd, out + have, room - 1 - have)) > 0) {
    have += (size_t)n;
    if (have < room - 1)
      break;
    memmove(out, out + have - room / 2, room / 2);
    have = room / 2;
  }
  close(fd);
  out[have] = 0;
  return have > 0;
}

/* "running", "-1 SP PC" (a page fault, for one) or "NUMBER six arguments SP
** PC". */
enum ljp_task_state ljp_task_place(pid_t tid, struct ljp_regs *regs)
{
  static const uint8_t argument[] = {LJP_RDI, LJP_RSI, LJP_RDX,
                                     LJP_R10, LJP_R8,  LJP_R9};
  enum { ARGUMENTS = 6, VALUES = ARGUMENTS + 2 };
  char text[256], *at, *end;
  uint64_t value[VALUES];
  unsigned n = 0;
  if (!place_read(tid, "syscall", text, sizeof text))
    return LJP_TASK_UNREADABLE;
  long number = strtol(text, &at, 10);
  if (at == text)
    return LJP_TASK_RUNS;
  for (; n < VALUES; n++, at = end) {
    value[n] = strtoull(at, &end, 16);
    if (end == at)
      break;
  }
  memset(regs, 0, sizeof *regs);
  if (n < 2)
    return LJP_TASK_RUNS;
  if (n == VALUES && number >= 0) {
    for (unsigned i = 0; i < ARGUMENTS; i++) {
      regs->r[argument[i]] = value[i];
      regs->known |= 1u << argument[i];
    }
  }
  regs->r[LJP_RSP] = value[n - 2];
  regs->r[LJP_RIP] = value[n - 1];
  regs->known |= 1u << LJP_RSP | 1u << LJP_RIP;
  regs->exact = true;
  return LJP_TASK_WAITS;
}

bool ljp_task_turns(pid_t tid, struct ljp_task_turns *turns)
{
  char text[96], *at;
  if (!place_read(tid, "schedstat", text, sizeof text))
    return false;
  strtoull(text, &at, 10); /* the time that it ran: its CPU clock knows */
  turns->queued_ns = strtoull(at, &at, 10);
  turns->turns = strtoull(at, &at, 10);
  return true;
}

bool ljp_task_waits(pid_t tid, uint64_t *waits)
{
  /* Not the line "nonvoluntary_ctxt_switches". */
  static const char line[] = "\nvoluntary_ctxt_switches:";
  char text[4096];
  const char *at =
      place_read(tid, "status", text, sizeof text) ? strstr(text, line) : NULL;
  if (at)
    *waits = strtoull(at + sizeof line - 1, NULL, 10);
  return at != NULL;
}

/* Is the program counter behind a system call? */
static bool place_in_call(uint64_t rip)
{
  uint8_t code[2];
  return ljp_safe_copy(code, (const void *)(uintptr_t)(rip - 2), 2) == 2 &&
         code[0] == 0x0f && code[1] == 0x05;
}

bool ljp_watch_walk(const struct ljp_regs *from, struct ljp_watch_place *place)
{
  const struct ljp_sampler_shared *shared = &ljp_sampler_shared;
  struct ljp_walk walk;
  struct ljp_unwind_room room;
  struct ljp_regs regs = *from;
  bool in_call = place_in_call(from->r[LJP_RIP]);
  regs.room = &room;
  place->generation = ljp_guest_generation();
  const struct ljp_unwind_map *map = ljp_unwind_acquire(shared->unwind);
  if (!map)
    return false;
  enum ljp_walk_result result =
      shared->mode == LJP_SAMPLER_STACKS
          ? ljp_walk(&walk, map, &regs, place->frames, shared->depth)
          : ljp_walk_leaf(&walk, map, &regs, place->frames, shared->depth);
  ljp_unwind_release(shared->unwind, map);
  if (result == LJP_WALK_DEFER)
    walk.stack.cut = LJP_CUT_RESIZE;
  if (in_call && walk.stack.count)
    ljp_sample_add_leaf(&walk.stack, LJP_FRAME_KERNEL, shared->depth);
  if (shared->mode == LJP_SAMPLER_LEAF)
    ljp_sample_keep_leaf(&walk.stack);
  ljp_assert(walk.stack.count <= LJP_STACK_MAX_FRAMES);
  place->vm = walk.guest.vm;
  place->labels = ljp_guest_labels_at(walk.guest.thread);
  place->count = walk.stack.count;
  place->cut = walk.stack.cut;
  return true;
}
