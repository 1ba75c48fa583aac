/*
** The spine against the VM itself: a Lua program that calls in every way that
** LuaJIT has asks at random places for the frames of its topmost segment. What
** a remembered spine says must be what a new one says, and what lua_getstack()
** says.
*/
#define LUA_CORE

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "lauxlib.h"
#include "lj_frame.h"
#include "lj_obj.h"
#include "lua.h"
#include "lualib.h"

#include "src/base/memo.h"
#include "src/luajit/asm/vmmap.h"
#include "src/luajit/frames/walk.h"
#include "src/luajit/spine.h"

enum { LEVELS = 700, WORDS = 4 * LEVELS, SPINES = 4, PROTOS = 4096 };

struct holder {
  struct ljp_spine spine;
  struct ljp_spine_calls calls;
  struct ljp_memo_read link[LEVELS + LJP_SPINE_SPARE];
  struct ljp_level level[LEVELS];
  uint64_t stack[LEVELS];
  /* What the spine said last, and the words that prove it. */
  uint64_t said[LEVELS];
  unsigned frames, words;
  struct ljp_guest_start start;
  struct ljp_memo_read word[WORDS];
};

static struct {
  lua_State *L;
  struct ljp_guest_heap heap;
  struct holder kept[SPINES], fresh;
  const void *proto[PROTOS]; /* by the number that frames give it */
  const void *boundary[4];   /* C functions that call Lua by the C API */
  unsigned probes, same, partly, proven, deepest;
} world;

/* -- What the VM says ------------------------------------------------------ */

static bool truth_is_boundary(const void *function)
{
  for (int i = 0; i < 4; i++)
    if (world.boundary[i] == function)
      return true;
  return false;
}

static void truth_check(lua_State *L, const lua_Debug *level, uint64_t frame)
{
  const GCfunc *fn = lua_topointer(L, -1);
  if (isluafunc(fn)) {
    uint32_t ref = ljp_frame_proto_ref(frame);
    const void *proto = funcproto(fn);
    assert_int_equal(ljp_frame_kind(frame), LJP_FRAME_LUA);
    assert_int_equal(ljp_frame_line(frame), level->currentline);
    assert_in_range(ref, 1, PROTOS - 1);
    if (!world.proto[ref])
      world.proto[ref] = proto;
    assert_ptr_equal(world.proto[ref], proto);
  } else if (fn->c.ffid > FF_C) {
    assert_int_equal(frame, ljp_frame(LJP_FRAME_BUILTIN, 0, fn->c.ffid));
  } else {
    assert_int_equal(
        frame, ljp_frame(LJP_FRAME_CFUNC, 0, (uint64_t)(uintptr_t)fn->c.f));
  }
}

/* Compares with the levels of the thread down to the next C boundary. */
static void truth_compare(lua_State *L, const uint64_t *frames, unsigned count)
{
  lua_Debug level;
  unsigned n = 0;
  for (int i = 0; lua_getstack(L, i, &level); i++) {
    lua_getinfo(L, "fSl", &level);
    if (i > 0 && truth_is_boundary(lua_topointer(L, -1))) {
      lua_pop(L, 1);
      break;
    }
    assert_true(n < count);
    truth_check(L, &level, frames[count - 1 - n++]); /* the root is first */
    lua_pop(L, 1);
  }
  assert_int_equal(n, count);
}

/* -- Probes ---------------------------------------------------------------- */

static void holder_init(struct holder *h, unsigned levels, unsigned room)
{
  memset(h, 0, sizeof *h);
  h->spine = (struct ljp_spine){.levels = levels,
                                .room = room,
                                .link = h->link,
                                .level = h->level,
                                .stack = h->stack,
                                .calls = &h->calls};
}

/* How the interpreter calls a C function: BASE is in L, and nothing has been
** pushed below the C frame. */
static const struct ljp_guest_site site = {.kind = LJP_SITE_VM,
                                           .mode = LJP_VM_ENTER};

static void probe_start(lua_State *L, struct ljp_guest_regs *regs,
                        struct ljp_guest_start *start)
{
  *regs =
      (struct ljp_guest_regs){.sp = (uint64_t)(uintptr_t)cframe_raw(L->cframe)};
  assert_true(ljp_guest_start_at(&world.heap, &site, regs, start));
  assert_int_equal(start->L, (uint64_t)(uintptr_t)L);
  assert_int_equal(start->base, (uint64_t)(uintptr_t)L->base);
}

struct unaligned {
  uint64_t word;
} __attribute__((packed));

/* Some of the words lie in machine stack that is used for something else now. */
static __attribute__((no_sanitize_address)) bool
words_unchanged(const struct holder *h)
{
  for (unsigned i = 0; i < h->words; i++) {
    const struct unaligned *now = (const void *)(uintptr_t)h->word[i].at;
    if (now->word != h->word[i].value)
      return false;
  }
  return h->words > 0;
}

static void probe_kept(struct holder *h, const struct ljp_guest_start *start,
                       const struct ljp_guest_regs *regs)
{
  const struct ljp_spine *fresh = &world.fresh.spine;
  uint32_t kept;
  assert_true(ljp_spine_follow(&h->spine, start, &kept));
  assert_int_equal(h->spine.frames, fresh->frames);
  assert_memory_equal(h->stack, fresh->stack, fresh->frames * 8);
  assert_int_equal(h->spine.below, fresh->below);
  /* The frames that it says it has kept are those of the last time. */
  assert_true(kept <= h->spine.frames);
  if (h->frames && h->start.L == start->L && h->start.cframe == start->cframe) {
    assert_true(kept <= h->frames);
    assert_memory_equal(h->said, h->stack, kept * 8);
    world.same += kept == h->spine.frames && kept == h->frames;
    world.partly += kept > 0 && kept < h->spine.frames;
  }
  memcpy(h->said, h->stack, h->spine.frames * 8);
  h->frames = h->spine.frames;
  h->start = *start;
  h->words = ljp_guest_start_words(&world.heap, &site, regs, start, &h->spine,
                                   h->word, WORDS);
  assert_true(words_unchanged(h));
}

static int probe(lua_State *L)
{
  struct ljp_guest_start start;
  struct ljp_guest_regs regs;
  struct holder *fresh = &world.fresh,
                *h = &world.kept[world.probes++ / 7 % SPINES];
  uint32_t kept;
  probe_start(L, &regs, &start);
  holder_init(fresh, LEVELS, LEVELS);
  assert_true(ljp_spine_follow(&fresh->spine, &start, &kept));
  assert_int_equal(kept, 0);
  truth_compare(L, fresh->stack, fresh->spine.frames);
  if (fresh->spine.frames > world.deepest)
    world.deepest = fresh->spine.frames;
  /* Unchanged words prove the stack of the last time. */
  if (h->start.L == start.L && words_unchanged(h)) {
    world.proven++;
    assert_int_equal(h->frames, fresh->spine.frames);
    assert_memory_equal(h->said, fresh->stack, h->frames * 8);
  }
  probe_kept(h, &start, &regs);
  return 0;
}

static int enter(lua_State *L)
{
  lua_call(L, lua_gettop(L) - 1, 0);
  return 0;
}

/* -- The program ----------------------------------------------------------- */

static const char program[] =
    "local probe, enter, seed = ...\n"
    "local loaded = {} -- A freed prototype's number is given again.\n"
    "local function random(n)\n"
    "  seed = (seed * 1103515245 + 12345) % 2147483648\n"
    "  return math.floor(seed / 65536) % n + 1\n"
    "end\n"
    "local step\n"
    "local object = setmetatable({}, {\n"
    "  __index = function(_, n) step(n) end,\n"
    "  __newindex = function(_, _, n) step(n) end,\n"
    "  __add = function(_, n) step(n - 1) return n end,\n"
    "  __eq = function() step(0) return false end,\n"
    "  __concat = function(_, n) step(tonumber(n)) return '' end,\n"
    "  __call = function(_, n) step(n) end,\n"
    "  __lt = function() step(1) return true end })\n"
    "local other = setmetatable({}, getmetatable(object))\n"
    "local function varargs(n, ...) step(n) return select('#', ...) end\n"
    "local function tail(n) return step(n) end\n"
    "local function iterate(n, i) if not i then step(n) return 1 end end\n"
    "local ways = {\n"
    "  function(n) step(n) step(n - 1) end,\n"
    "  function(n) return step(n) end,\n"
    "  function(n) varargs(n, 1, nil, 3) end,\n"
    "  function(n) pcall(step, n) probe() end,\n"
    "  function(n) xpcall(function() step(n) error('e', 0) end,\n"
    "    function() probe() end) end,\n"
    "  function(n) enter(step, n) probe() end,\n"
    "  function(n) return object[n] end,\n"
    "  function(n) object.x = n end,\n"
    "  function(n) local x = object + n return x end,\n"
    "  function(n) return object == other end,\n"
    "  function(n) return object .. n end,\n"
    "  function(n) object(n) end,\n"
    "  function(n) return object < other end,\n"
    "  function(n) coroutine.wrap(function(...)\n"
    "    varargs(n, ...) coroutine.yield() end)(1, 2) end,\n"
    "  function(n) local c = coroutine.wrap(function()\n"
    "    step(n) coroutine.yield() probe() end) c() probe() c() end,\n"
    "  function(n) table.sort({ 2, 1 }, function(a, b)\n"
    "    step(n - 1) return a < b end) end,\n"
    "  function(n) string.gsub('a', 'a', function() step(n) end) end,\n"
    "  function(n) for _ in iterate, n do probe() end end,\n"
    "  function(n) tail(n) end,\n"
    "  function(n) local f = loadstring('local step, n = ... step(n)\\n'\n"
    "    .. ('\\n'):rep(random(9)) .. 'step(n - 1)')\n"
    "    loaded[#loaded + 1] = f f(step, n) end,\n"
    "  function(n) for i = 1, 2 do -- One position, two builtins.\n"
    "    (i == 1 and pcall or xpcall)(function() step(n) end, probe) end end,\n"
    "  function(n) local x for _ = 1, 2 do -- One base, two positions.\n"
    "    x = object + n\n"
    "    x = object + x end end,\n"
    "  function(n) pcall(error, 'e', 0) step(n) end,\n"
    "  function(n) if random(9) == 1 then collectgarbage() end step(n) end,\n"
    "}\n"
    "function step(n)\n"
    "  if random(3) == 1 then probe() end\n"
    "  if n > 0 then ways[random(#ways)](n - 1) end\n"
    "  probe()\n"
    "end\n"
    "local function deep(n) if n > 0 then deep(n - 1) probe() else\n"
    "  step(3) end end\n"
    "for i = 1, 400 do step(i % 9) end\n"
    "for i = 1, 8 do deep(i * 75) step(2) end\n";

static int world_make(void **state)
{
  (void)state;
  lua_State *L = luaL_newstate();
  if (!L)
    return -1;
  luaL_openlibs(L);
  luaL_dostring(L, "jit.off()");
  world.L = L;
  if (!ljp_guest_heap(L, &world.heap))
    return -1;
  for (int i = 0; i < SPINES; i++)
    holder_init(&world.kept[i], LEVELS, LEVELS);
  lua_pushcfunction(L, probe);
  lua_pushcfunction(L, enter);
  lua_getglobal(L, "table");
  lua_getfield(L, -1, "sort");
  lua_getglobal(L, "string");
  lua_getfield(L, -1, "gsub");
  world.boundary[0] = lua_topointer(L, 2);
  world.boundary[1] = lua_topointer(L, 4);
  world.boundary[2] = lua_topointer(L, 6);
  lua_getglobal(L, "error"); /* which calls the handler of xpcall() */
  world.boundary[3] = lua_topointer(L, 7);
  lua_settop(L, 2);
  return 0;
}

static int world_free(void **state)
{
  (void)state;
  lua_close(world.L);
  return 0;
}

static void run(const char *text, int seed)
{
  lua_State *L = world.L;
  assert_int_equal(luaL_loadstring(L, text), 0);
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  lua_pushinteger(L, seed);
  if (lua_pcall(L, 3, 0, 0))
    fail_msg("%s", lua_tostring(L, -1));
}

/* Prototypes of loadstring() are freed, and their numbers are given again. */
static void forget_protos(void)
{
  memset(world.proto, 0, sizeof world.proto);
}

static void a_spine_says_what_the_vm_says(void **state)
{
  (void)state;
  for (int seed = 1; seed <= 6; seed++) {
    run(program, seed);
    lua_gc(world.L, LUA_GCCOLLECT, 0);
    forget_protos();
  }
  /* Each of the ways to remember must have been used, or nothing was shown. */
  assert_true(world.probes > 10000);
  assert_true(world.same > 100);
  assert_true(world.partly > 1000);
  assert_true(world.proven > 10);
  assert_true(world.deepest > 500);
}

/* Does a new spine with so much room have the frames of world.fresh? */
static bool tight_fits(const struct ljp_guest_start *start, unsigned levels,
                       unsigned room)
{
  struct holder *h = &world.kept[0];
  uint32_t kept;
  holder_init(h, levels, room);
  bool fits = ljp_spine_follow(&h->spine, start, &kept);
  assert_int_equal(h->spine.tight, !fits);
  assert_int_equal(h->spine.frames, fits ? world.fresh.spine.frames : 0);
  assert_int_equal(h->spine.count, fits ? world.fresh.spine.count : 0);
  return fits;
}

static int probe_tight(lua_State *L)
{
  struct ljp_guest_start start;
  struct ljp_guest_regs regs;
  struct holder *h = &world.fresh;
  uint32_t kept;
  probe_start(L, &regs, &start);
  holder_init(h, LEVELS, LEVELS);
  assert_true(ljp_spine_follow(&h->spine, &start, &kept));
  assert_int_equal(h->spine.frames, 8);
  /* Varargs double the main chunk's frame, and new levels need a spare one. */
  assert_int_equal(h->spine.count, 9);
  for (unsigned levels = 1; levels < 10; levels++)
    assert_false(tight_fits(&start, levels, LEVELS));
  assert_true(tight_fits(&start, 10, LEVELS));
  for (unsigned room = 0; room < 9; room++)
    assert_false(tight_fits(&start, LEVELS, room));
  assert_true(tight_fits(&start, LEVELS, 9));
  /* No room for the words, and nothing is written behind it. */
  unsigned words = ljp_guest_start_words(&world.heap, &site, &regs, &start,
                                         &h->spine, h->word, WORDS);
  assert_true(words > 0);
  h->word[words - 1].value = 77;
  assert_int_equal(ljp_guest_start_words(&world.heap, &site, &regs, &start,
                                         &h->spine, h->word, words - 1),
                   0);
  assert_int_equal(h->word[words - 1].value, 77);
  return 0;
}

static void a_spine_says_when_it_is_too_small(void **state)
{
  (void)state;
  lua_State *L = world.L;
  lua_pushcfunction(L, probe_tight);
  lua_setglobal(L, "tight");
  /* The chunk, deep() six times, and tight(). */
  run("local function deep(n) if n > 1 then deep(n - 1) else tight() end end\n"
      "deep(6)",
      0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_spine_says_what_the_vm_says),
      cmocka_unit_test(a_spine_says_when_it_is_too_small),
  };
  return cmocka_run_group_tests(tests, world_make, world_free);
}
