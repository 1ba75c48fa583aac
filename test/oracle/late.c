/*
** Late samples in the oracle; see late.h.
*/
#include "test/oracle/late.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "profilers/cpu/deferred.h"
#include "profilers/session/stand_in.h"
#include "src/luajit/vms.h"

enum { WAITING = 65536, FRAMES = 8192, WORDS = 1 << 26 };

struct late {
  uint64_t rip, root, first;
  uint32_t count;
  struct ljp_deferred_place place;
};

static struct ljp_unwind *tables;
static bool is_verbose;
static bool (*same)(const uint64_t *a, uint32_t a_count, const uint64_t *b,
                    uint32_t b_count);
static void (*tell)(bool right, uint64_t rip);
static struct late late[WAITING];
static uint64_t *words, used; /* the truths, one after the other */
static uint32_t waiting, printed;
static volatile bool at_work;

static uint64_t taken[FRAMES], mine[FRAMES];

/* -- Taking them ----------------------------------------------------------- */

/* Is the move itself on top, and below it its callers, as in the truth? Frames
** that the truth has above them were called by the move. */
static bool late_is_right(const struct late *l, const uint64_t *frames,
                          uint32_t count)
{
  const uint64_t *truth = words + l->first;
  if (!count || ljp_frame_kind(frames[0]) != LJP_FRAME_HOST ||
      count - 1 > l->count)
    return false;
  uint32_t above = l->count - (count - 1);
  for (uint32_t i = 0; i < above; i++)
    if (ljp_frame_kind(truth[i]) != LJP_FRAME_HOST)
      return false;
  uint64_t in_move = above ? ljp_frame_payload(truth[above - 1]) : l->rip;
  return in_move == ljp_frame_payload(frames[0]) &&
         same(frames + 1, count - 1, truth + above, count - 1);
}

static void late_judge(const struct late *l, const struct ljp_walk *walk,
                       enum ljp_walk_result result)
{
  struct ljp_stack stack = walk->stack;
  bool right = result == LJP_WALK_DONE && !stack.cut;
  memcpy(mine, taken, stack.count * sizeof *mine);
  stack.frames = mine;
  ljp_deferred_drop_hook(&l->place, &stack);
  /* What lies outside of the workload is not in the truth. */
  for (uint32_t i = stack.count; i-- > 0;)
    if (mine[i] == ljp_frame(LJP_FRAME_HOST, 0, l->root)) {
      stack.count = i + 1;
      break;
    }
  right = right && late_is_right(l, mine, stack.count);
  tell(right, l->rip);
  if (right || !is_verbose || printed++ >= 8)
    return;
  fprintf(stderr, "late sample of %#lx, result %d, cut %d:\n", (long)l->rip,
          result, stack.cut);
  for (uint32_t i = 0; i < stack.count || i < l->count; i++)
    fprintf(stderr, "    %#18lx   truth %#18lx\n",
            (long)(i < stack.count ? mine[i] : 0),
            (long)(i < l->count ? words[l->first + i] : 0));
}

__attribute__((noinline)) static void take(void)
{
  struct ljp_unwind_room room;
  struct ljp_regs regs;
  struct ljp_walk walk;
  memset(&regs, 0, sizeof regs);
  ljp_registers_here(&regs);
  regs.known = LJP_REGS_CALLEE_SAVED | 1u << LJP_RSP | 1u << LJP_RIP;
  regs.room = &room;
  const struct ljp_unwind_map *map = ljp_unwind_acquire(tables);
  enum ljp_walk_result result = ljp_walk(&walk, map, &regs, taken, FRAMES);
  ljp_unwind_release(tables, map);
  for (uint32_t i = 0; i < waiting; i++)
    late_judge(&late[i], &walk, result);
  waiting = 0;
  used = 0;
}

/* This code is not stepped, because each copied word would be an instruction.
** The instructions before and after that are stepped find late_at_work(). The
** stack is the same there. */
static void late_on_deferred(void)
{
  enum { TRAP_FLAG = 0x100 };
  uint64_t flags;
  at_work = true;
  __asm__ volatile("pushfq; popq %0" : "=r"(flags)::"memory");
  __asm__ volatile("pushq %0; popfq" ::"r"(flags & ~(uint64_t)TRAP_FLAG)
                   : "memory", "cc");
  take();
  __asm__ volatile("pushq %0; popfq" ::"r"(flags) : "memory", "cc");
  at_work = false;
}

/* -- What the oracle calls ------------------------------------------------- */

void late_init(struct ljp_unwind *unwind, bool verbose,
               bool (*equal)(const uint64_t *a, uint32_t a_count,
                             const uint64_t *b, uint32_t b_count),
               void (*judged)(bool right, uint64_t rip))
{
  static const struct ljp_guest_listener listener = {.deferred =
                                                         late_on_deferred};
  tables = unwind;
  is_verbose = verbose;
  same = equal;
  tell = judged;
  words = mmap(NULL, WORDS * sizeof *words, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ljp_guest_listen(LJP_LISTENER_CPU, &listener);
}

bool late_add(uint64_t rip, const struct ljp_stack *stack,
              const uint64_t *truth, uint32_t count, uint64_t root)
{
  if (words == MAP_FAILED || waiting == WAITING || count > WORDS - used)
    return false;
  struct late *l = &late[waiting++];
  *l = (struct late){.rip = rip, .root = root, .first = used, .count = count};
  ljp_deferred_note(&l->place, stack);
  memcpy(words + used, truth, count * sizeof *truth);
  used += count;
  return true;
}

uint32_t late_waiting(void)
{
  return waiting;
}

bool late_at_work(void)
{
  return at_work;
}
