/*
** The oracle of traces: steps a Lua script one machine instruction at a time,
** twice. The first run is with the JIT compiler off, where the oracle of the
** walk (oracle.c) has shown that each stack is true. It collects all chains of
** functions with lines that the program can be in, and the order in which they
** follow each other. The second run is with the JIT compiler on. Each stack in
** (or called by) compiled code must be one of these chains, and going from one
** chain to another must not skip far in the program's own order.
**
** Usage: oracle_traces [-v] [-c SHARE] [-n LIMIT] SCRIPT
**   -v        print the first chains that are wrong
**   -c SHARE  fail unless this percentage of the instructions is right, with or
**             without a marker (default 98)
** Exit status 1 also if a chain that is called exact is wrong. Hoisted and
** moved instructions may break the order, so the order is printed, but not
** judged.
*/
#define LUA_CORE

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "luajit.h"

#include "profilers/unwind/walk.h"
#include "src/luajit/functions.h"
#include "src/luajit/traces.h"
#include "src/luajit/vm/lock.h"
#include "src/base/saferead.h"

enum {
  FRAMES = 8192,
  NODES = 4096,
  SLOTS = 16384,
  PAIRS = 16384,
  NEAR = 12, /* successive steps of the program that may have no code */
  TRAP_FLAG = 0x100
};

static struct {
  struct ljp_unwind *unwind;
  bool on, judging, verbose;
  uint64_t steps, limit;
  /* Chains of the program. */
  uint64_t key[SLOTS];
  uint16_t node[SLOTS];
  uint32_t nodes, last;
  uint8_t edge[NODES][NODES / 8];
  /* Instructions of compiled code, by exactness. */
  uint64_t seen[3], right[3], unknown[3];
  uint64_t exits;  /* instructions of the exit handler: no trace's body */
  uint64_t locked; /* ... where our own code held what naming needs */
  struct {
    uint32_t from, to;
    uint64_t count;
  } pair[PAIRS];
  uint32_t printed;
} run;

static uint64_t sample[FRAMES];

/* -- Chains ---------------------------------------------------------------- */

static uint64_t traces_mix(uint64_t hash, uint64_t value)
{
  hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 29;
}

/* The guest frames as one number; 0 if a line is unknown. */
static uint64_t traces_chain_of(const struct ljp_stack *stack, bool *whole)
{
  uint64_t hash = 1;
  *whole = true;
  for (uint32_t i = 0; i < stack->count; i++) {
    uint64_t word = stack->frames[i];
    struct ljp_guest_proto proto;
    switch (ljp_frame_kind(word)) {
    case LJP_FRAME_LUA:
    case LJP_FRAME_LUA_INLINED:
      if (!ljp_frame_line(word) ||
          !ljp_guest_proto(ljp_frame_proto_ref(word), &proto))
        *whole = false;
      else
        hash = traces_mix(hash, (uint64_t)proto.first_line << 32 |
                                    ljp_frame_line(word));
      break;
    case LJP_FRAME_BUILTIN:
      hash = traces_mix(hash, UINT64_C(1) << 60 | ljp_frame_payload(word));
      break;
    }
  }
  return hash;
}

static uint32_t traces_find(uint64_t key, bool add)
{
  uint32_t i = (uint32_t)(key % SLOTS);
  while (run.key[i] && run.key[i] != key)
    i = (i + 1) % SLOTS;
  if (run.key[i])
    return run.node[i];
  if (!add || run.nodes + 1 >= NODES)
    return 0;
  run.key[i] = key;
  run.node[i] = (uint16_t)++run.nodes;
  return run.nodes;
}

static void traces_print_chain(const struct ljp_stack *stack, uint64_t rip)
{
  fprintf(stderr, "at %#lx:", (long)rip);
  for (uint32_t i = 0; i < stack->count && i < 40; i++) {
    uint64_t word = stack->frames[i];
    struct ljp_guest_proto proto;
    switch (ljp_frame_kind(word)) {
    case LJP_FRAME_LUA:
    case LJP_FRAME_LUA_INLINED:
      if (ljp_guest_proto(ljp_frame_proto_ref(word), &proto))
        fprintf(stderr, " %s:%u/%u", proto.name, ljp_frame_line(word),
                ljp_frame_flags(word));
      break;
    case LJP_FRAME_BUILTIN:
      fprintf(stderr, " [%s]",
              ljp_guest_builtin((uint32_t)ljp_frame_payload(word)));
      break;
    case LJP_FRAME_TRACE: {
      struct ljp_guest_trace trace;
      if (ljp_guest_trace(ljp_frame_payload(word), &trace))
        fprintf(stderr, " trace %u+%#lx of %#x (%s)", trace.number,
                (long)(rip - trace.code), trace.code_bytes, trace.link_type);
    }
    }
  }
  fprintf(stderr, "\n");
}

/* -- Stepping -------------------------------------------------------------- */

static void traces_judge(const struct ljp_stack *stack, uint64_t rip)
{
  uint32_t i = 0;
  while (i < stack->count &&
         ljp_frame_kind(stack->frames[i]) != LJP_FRAME_TRACE &&
         ljp_frame_kind(stack->frames[i]) != LJP_FRAME_LUA)
    i++;
  if (i == stack->count ||
      ljp_frame_kind(stack->frames[i]) != LJP_FRAME_TRACE) {
    run.last = 0;
    return;
  }
  unsigned exact = ljp_frame_flags(stack->frames[i]) & LJP_FRAME_EXACT_MASK;
  bool whole;
  uint32_t node = traces_find(traces_chain_of(stack, &whole), false);
  run.seen[exact]++;
  if (!whole) {
    run.unknown[exact]++;
    return;
  }
  if (!node) {
    if (run.verbose && run.printed++ < 40)
      traces_print_chain(stack, rip);
    return;
  }
  run.right[exact]++;
  if (exact != LJP_EXACT_EXACT)
    return;
  if (run.last && run.last != node) {
    uint32_t k = (run.last * 8191 + node) % PAIRS;
    while (run.pair[k].count &&
           (run.pair[k].from != run.last || run.pair[k].to != node))
      k = (k + 1) % PAIRS;
    run.pair[k].from = run.last;
    run.pair[k].to = node;
    run.pair[k].count++;
  }
  run.last = node;
}

static void traces_on_trap(int sig, siginfo_t *info, void *context)
{
  (void)sig;
  (void)info;
  greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;
  if (!run.on) {
    gregs[REG_EFL] &= ~TRAP_FLAG;
    return;
  }
  if (++run.steps >= run.limit)
    run.on = false;
  struct ljp_unwind_room room;
  struct ljp_regs regs;
  struct ljp_walk walk;
  ljp_regs_from_context(&regs, context, &room);
  const struct ljp_unwind_map *map = ljp_unwind_acquire(run.unwind);
  enum ljp_walk_result result = ljp_walk(&walk, map, &regs, sample, FRAMES);
  ljp_unwind_release(run.unwind, map);
  if (ljp_unwind_wants_poll(run.unwind))
    ljp_unwind_poll(run.unwind, 0);
  if (result == LJP_WALK_DEFER || walk.stack.cut)
    return;
  /* Asking for a name here would wait forever. */
  if (atomic_load_explicit(&ljp_lock_words[LJP_LOCK_PROTOS],
                           memory_order_relaxed)) {
    run.locked++;
    return;
  }
  if (run.judging && walk.guest.state == LJP_VMSTATE_EXIT) {
    run.exits++;
    run.last = 0;
    return;
  }
  if (run.judging) {
    traces_judge(&walk.stack, (uint64_t)gregs[REG_RIP]);
    return;
  }
  bool whole;
  uint64_t chain = traces_chain_of(&walk.stack, &whole);
  uint32_t node = whole ? traces_find(chain, true) : 0;
  if (!node)
    return;
  if (run.last && run.last != node)
    run.edge[run.last][node / 8] |= (uint8_t)(1u << node % 8);
  run.last = node;
}

static int traces_lua_stepping(lua_State *L)
{
  run.on = true;
  run.last = 0;
  run.steps = 0;
  __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
  int status = lua_pcall(L, lua_gettop(L) - 1, 0, 0);
  run.on = false;
  __asm__ volatile("nop; nop");
  if (status)
    return lua_error(L);
  return 0;
}

/* The percentage of pairs that lie further apart than NEAR steps of the
** program. */
static double traces_out_of_order(void)
{
  static uint8_t reached[NODES];
  static uint16_t queue[NODES];
  uint64_t all = 0, far = 0;
  for (uint32_t i = 0; i < PAIRS; i++) {
    if (!run.pair[i].count)
      continue;
    uint32_t head = 0, tail = 0;
    memset(reached, 0, sizeof reached);
    queue[tail++] = (uint16_t)run.pair[i].from;
    reached[run.pair[i].from] = 1;
    bool found = false;
    while (head < tail && !found) {
      uint32_t at = queue[head++];
      if (reached[at] > NEAR)
        break;
      for (uint32_t n = 1; n <= run.nodes && !found; n++) {
        if (!(run.edge[at][n / 8] >> n % 8 & 1) || reached[n])
          continue;
        reached[n] = (uint8_t)(reached[at] + 1);
        queue[tail++] = (uint16_t)n;
        found = n == run.pair[i].to;
      }
    }
    all += run.pair[i].count;
    far += found ? 0 : run.pair[i].count;
  }
  return all ? 100.0 * (double)far / (double)all : 0;
}

static void traces_once(const char *script, bool jit)
{
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  if (!jit)
    luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
  lua_pushcfunction(L, traces_lua_stepping);
  if (luaL_loadfile(L, script) || lua_pcall(L, 1, 0, 0)) {
    fprintf(stderr, "oracle: %s\n", lua_tostring(L, -1));
    exit(2);
  }
  lua_close(L);
}

int main(int argc, char **argv)
{
  double wanted = 98;
  int i = 1;
  run.limit = UINT64_MAX;
  for (; i < argc && argv[i][0] == '-'; i++) {
    if (!strcmp(argv[i], "-v"))
      run.verbose = true;
    else if (!strcmp(argv[i], "-c") && i + 1 < argc)
      wanted = strtod(argv[++i], NULL);
    else if (!strcmp(argv[i], "-n") && i + 1 < argc)
      run.limit = strtoull(argv[++i], NULL, 10);
  }
  if (i >= argc) {
    fprintf(stderr, "usage: oracle_traces [-v] [-c SHARE] [-n LIMIT] SCRIPT\n");
    return 2;
  }
  if (ljp_saferead_install() != LJP_OK ||
      ljp_unwind_new(&run.unwind) != LJP_OK) {
    fprintf(stderr, "oracle: out of memory\n");
    return 2;
  }
  static char stack[1 << 20];
  stack_t ss = {.ss_sp = stack, .ss_size = sizeof stack};
  sigaltstack(&ss, NULL);
  struct sigaction sa = {.sa_sigaction = traces_on_trap,
                         .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigaction(SIGTRAP, &sa, NULL);
  traces_once(argv[i], false);
  run.judging = true;
  traces_once(argv[i], true);

  static const char *const names[] = {"marker", "snapshot", "root"};
  uint64_t seen = 0, right = 0;
  const char *name = strrchr(argv[i], '/');
  printf("%s: chains %u exits %lu locked %lu", name ? name + 1 : argv[i],
         run.nodes, (long)run.exits, (long)run.locked);
  for (int e = 0; e < 3; e++) {
    uint64_t wrong = run.seen[e] - run.right[e] - run.unknown[e];
    printf(" | %s %lu wrong %lu no line %lu", names[e], (long)run.seen[e],
           (long)wrong, (long)run.unknown[e]);
    seen += run.seen[e];
    right += run.right[e];
  }
  double share = seen ? 100.0 * (double)right / (double)seen : 0;
  printf(" | right %.3f %% of %lu | out of order %.3f %%\n", share, (long)seen,
         traces_out_of_order());
  uint64_t wrong = run.seen[0] - run.right[0] - run.unknown[0];
  return wrong || share < wanted || seen < 1000;
}
