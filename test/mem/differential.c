/*
** The memory profiler against LuaJIT's own debug interface. Below the profiler
** is an allocator of ours that calls lua_getstack() and lua_getinfo() at every
** call. Afterwards each event of the stream must be the same call with the same
** stack. The JIT compiler is off: in compiled code LuaJIT itself does not know
** the stack.
**
** differential SCRIPT EVENTS STREAM [INDEX]: runs SCRIPT (a function that is
** called over and over) until there are EVENTS events. INDEX: shows what
** lua_getinfo() says at that event.
*/
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lj_obj.h"

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lmisclib.h"

#include "parsers/stream/names.h"
#include "parsers/stream/reader.h"

enum { C_FRAME = 1, CUT_FRAME = 2, SHOWN = 5 };

struct call {
  uint64_t address, old, size, old_size, chain;
  uint32_t depth;
  uint8_t op;
};

static struct call *calls;
static uint64_t count, room, shown = UINT64_MAX;
static bool watching;
static lua_State *main_thread;

static uint64_t mix(uint64_t hash, uint64_t item)
{
  return (hash ^ item) * UINT64_C(0x9e3779b97f4a7c15) + (hash >> 29);
}

/* -- What LuaJIT says ------------------------------------------------------ */

static void note_chain(struct call *call)
{
  GCobj *current = gcref(G(main_thread)->cur_L);
  lua_State *L = current ? gco2th(current) : main_thread;
  lua_Debug ar;
  for (int level = 0; lua_getstack(L, level, &ar); level++) {
    uint64_t item = C_FRAME;
    lua_getinfo(L, "Sl", &ar);
    if (strcmp(ar.what, "C") != 0) {
      uint64_t line = ar.currentline > 0 ? (uint64_t)ar.currentline : 0;
      item = (uint64_t)ar.linedefined << 32 | line << 8;
    }
    if (count == shown)
      printf("  lua_getinfo: %s line %d of the function at %d\n", ar.what,
             ar.currentline, ar.linedefined);
    call->chain = mix(call->chain, item);
    call->depth++;
  }
}

static void *allocate(void *ud, void *block, size_t old_size, size_t size)
{
  struct call *call = NULL;
  (void)ud;
  if (watching) {
    if (count == room) {
      room = room ? 2 * room : 1 << 20;
      calls = realloc(calls, room * sizeof *calls);
      if (!calls)
        abort();
    }
    call = &calls[count];
    memset(call, 0, sizeof *call);
    call->old = (uint64_t)(uintptr_t)block;
    call->size = size ? size : old_size;
    call->old_size = old_size;
    call->op = !size ? LJP_MEM_FREE : block ? LJP_MEM_REALLOC : LJP_MEM_ALLOC;
    note_chain(call);
    count++;
  }
  if (!size) {
    free(block);
    return NULL;
  }
  void *now = realloc(block, size);
  if (call)
    call->address = (uint64_t)(uintptr_t)now;
  return now;
}

/* -- What the stream says -------------------------------------------------- */

static uint64_t chain_of(const struct ljp_model *model, uint64_t stack,
                         uint32_t depth, uint32_t *frames_found, bool show)
{
  const struct ljp_rec_node *frames[LJP_STACK_MAX_NODES];
  unsigned n;
  uint64_t chain = 0;
  ljp_model_stack(model, stack, frames, &n);
  *frames_found = 0;
  for (unsigned i = 0; i < n; i++) {
    uint64_t item = CUT_FRAME;
    unsigned kind = frames[i]->kind;
    const struct ljp_rec_proto *proto = NULL;
    if (kind == LJP_FRAME_HOST || kind == LJP_FRAME_VM)
      continue;
    if (kind == LJP_FRAME_LUA) {
      proto = ljp_model_proto(model, frames[i]->ref);
      item = (proto ? proto->first_line : UINT32_MAX) << 32 | frames[i]->value
                                                                  << 8;
    } else if (kind == LJP_FRAME_BUILTIN || kind == LJP_FRAME_CFUNC) {
      item = C_FRAME;
    }
    if (show)
      printf("  stream: %s line %" PRIu64 " of the function at %" PRIu64 "\n",
             ljp_name_frame_kind(kind), proto ? frames[i]->value : 0,
             proto ? proto->first_line : 0);
    /* Below a coroutine's first frame are the frames of its resumer. */
    if (*frames_found < depth || item == CUT_FRAME)
      chain = mix(chain, item);
    ++*frames_found;
  }
  return chain;
}

static bool agrees(const struct call *call, const struct ljp_model *model,
                   const struct ljp_rec_mem *m, bool show)
{
  uint32_t depth;
  uint64_t chain = chain_of(model, m->stack, call->depth, &depth, show);
  uint64_t address = call->op == LJP_MEM_FREE ? call->old : call->address;
  uint64_t old = call->op == LJP_MEM_REALLOC ? call->old : 0;
  return m->op == call->op && m->address == address && m->old_address == old &&
         m->size == call->size &&
         (call->op != LJP_MEM_REALLOC || m->old_size == call->old_size) &&
         /* A sweep has no stack of its own. */
         ((m->flags & LJP_MEM_SWEPT) ||
          (chain == call->chain && depth >= call->depth));
}

static uint64_t compare(const char *path, uint64_t *events)
{
  struct ljp_reader *r = calloc(1, sizeof *r);
  const struct ljp_item *event;
  uint64_t wrong = 0;
  *events = 0;
  if (!r || ljp_reader_open(r, path)) {
    fprintf(stderr, "differential: %s\n", r ? r->error : "no memory");
    exit(1);
  }
  while (!ljp_reader_next(r, &event) && event->what != LJP_ITEM_FINISH) {
    if (event->what == LJP_ITEM_GAP || event->what == LJP_ITEM_BAD ||
        event->what == LJP_REC_LOSS) {
      printf("damage or loss in the stream\n");
      wrong++;
    }
    if (event->what != LJP_REC_MEM)
      continue;
    uint64_t i = (*events)++;
    if (i >= count)
      continue;
    if (agrees(&calls[i], &r->model, &event->u.mem, i == shown))
      continue;
    if (wrong++ < SHOWN) {
      const struct ljp_rec_mem *m = &event->u.mem;
      printf("event %" PRIu64 ": %s %" PRIu64 " bytes, stack of %u; stream: "
             "%s %" PRIu64 " bytes\n",
             i, ljp_name_mem_op(calls[i].op), calls[i].size, calls[i].depth,
             ljp_name_mem_op(m->op), m->size);
      agrees(&calls[i], &r->model, m, true);
    }
  }
  ljp_reader_fini(r);
  free(r);
  return wrong;
}

/* -- The run --------------------------------------------------------------- */

static size_t put(const void **data, size_t len, void *ctx)
{
  return fwrite(*data, 1, len, ctx);
}

int main(int argc, char **argv)
{
  struct luam_Memprof_Options options = {.writer = put};
  if (argc < 4) {
    fprintf(stderr, "usage: differential SCRIPT EVENTS STREAM [INDEX]\n");
    return 2;
  }
  uint64_t wanted = strtoull(argv[2], NULL, 10), events;
  if (argc > 4)
    shown = strtoull(argv[4], NULL, 10);
  lua_State *L = main_thread = lua_newstate(allocate, NULL);
  luaL_openlibs(L);
  FILE *out = fopen(argv[3], "wb");
  options.ctx = out;
  if (!out || luaL_dostring(L, "jit.off()") || luaL_loadfile(L, argv[1])) {
    fprintf(stderr, "differential: %s\n", lua_tostring(L, -1));
    return 1;
  }
  watching = true;
  if (luaM_memprof_start(L, &options)) {
    perror("differential: luaM_memprof_start");
    return 1;
  }
  for (int round = 1; count < wanted; round++) {
    lua_pushvalue(L, -1);
    lua_pushinteger(L, round);
    if (lua_pcall(L, 1, 0, 0)) {
      fprintf(stderr, "differential: %s\n", lua_tostring(L, -1));
      return 1;
    }
  }
  if (luaM_memprof_stop(L)) {
    perror("differential: luaM_memprof_stop");
    return 1;
  }
  watching = false;
  fclose(out);
  uint64_t wrong = compare(argv[3], &events);
  printf("%" PRIu64 " calls of the allocator, %" PRIu64 " events, %" PRIu64
         " differ\n",
         count, events, wrong);
  lua_close(L);
  free(calls);
  return wrong || events != count;
}
