/*
** The words of memory from which a start (ljp_guest_start_at()) and the spine
** that follows from it were made. As long as all of them are unchanged, so are
** both. See src/luajit/spine.h and RFC 3. Runs on the VM's own thread, in the
** allocator.
*/
#define LUA_CORE

#include <string.h>

#include "lj_obj.h"
#include "lj_frame.h"

#include "src/luajit/frames/walk.h"
#include "src/luajit/spine.h"

struct words {
  struct ljp_memo_read *at;
  unsigned count, room;
};

static void words_add(struct words *words, const void *address)
{
  if (words->count < words->room) {
    struct ljp_memo_read *word = &words->at[words->count];
    word->at = (uint64_t)(uintptr_t)address;
    memcpy(&word->value, address, sizeof word->value);
  }
  words->count++;
}

/* A Lua function is identified by its code. Builtins may share their code. */
static void words_add_function(struct words *words, uint64_t slot)
{
  const GCfunc *fn = (const GCfunc *)(uintptr_t)(slot & LJ_GCVMASK);
  if (isluafunc(fn)) {
    words_add(words, &fn->l.pc);
    return;
  }
  words_add(words, &fn->c.f);
  /* From behind the byte that holds the collector's colours. */
  words_add(words, (const char *)fn + offsetof(GChead, gct));
}

static void words_add_start(struct words *words,
                            const struct ljp_guest_heap *heap,
                            const struct ljp_guest_site *site,
                            const struct ljp_guest_regs *regs,
                            const struct ljp_guest_start *start)
{
  const global_State *g = (const global_State *)(uintptr_t)heap->g;
  const lua_State *L = (const lua_State *)(uintptr_t)start->L;
  const uint64_t *frame = (const uint64_t *)(uintptr_t)start->base;
  /* The words that are most likely to have changed come first. A live BASE
  ** tells where its stack is, and a running thread tells whose it is. */
  if (site->kind == LJP_SITE_TRACE) {
    frame = mref(g->jit_base, const uint64_t); /* maybe the frame of varargs */
    words_add(words, &g->jit_base);
    words_add(words, &g->cur_L);
  } else {
    words_add(words,
              site->in_rbp ? (const void *)regs->rbp : (const void *)&L->base);
    if (site->reads_pc)
      words_add(words, regs->rbx);
    words_add(words, (const uint64_t *)(uintptr_t)start->cframe + LJP_CF_L);
    words_add(words, &L->glref);
  }
  words_add(words, &L->cframe);
  if (site->kind == LJP_SITE_TRACE || site->reads_frame) {
    words_add(words, frame - 2);
    words_add_function(words, frame[-2]);
    if (frame != (const uint64_t *)(uintptr_t)start->base || site->reads_frame)
      words_add(words, frame - 1);
  }
}

/* A live BASE tells where its stack is. */
bool ljp_spine_pins(const struct ljp_spine *spine, uint64_t address)
{
  return address == spine->L + offsetof(lua_State, stack);
}

unsigned ljp_guest_start_words(const struct ljp_guest_heap *heap,
                               const struct ljp_guest_site *site,
                               const struct ljp_guest_regs *regs,
                               const struct ljp_guest_start *start,
                               const struct ljp_spine *spine,
                               struct ljp_memo_read *out, unsigned room)
{
  struct words words = {out, 0, room};
  words_add_start(&words, heap, site, regs, start);
  for (uint32_t i = spine->count; i-- > 0;) {
    const struct ljp_level *level = &spine->level[i];
    const uint64_t *frame = (const uint64_t *)(uintptr_t)level->base;
    words_add(&words, frame - 1);
    if (level->checked) {
      words_add(&words, frame - 2);
      words_add_function(&words, level->slot);
    }
    if (level->continues) {
      words_add(&words, frame - 3);
      words_add(&words, frame - 4);
    }
  }
  return words.count <= room ? words.count : 0;
}

/* -- Places ---------------------------------------------------------------- */

uint64_t ljp_guest_place(const struct ljp_guest_heap *heap)
{
  const global_State *g = (const global_State *)(uintptr_t)heap->g;
  if (*heap->vmstate >= 0)
    return mrefu(g->jit_base) * 31 + (uint64_t)*heap->vmstate;
  const uint64_t L = gcrefu(g->cur_L);
  uint64_t base, cframe, link = 0, pc = 0;
  if (!ljp_load(L + offsetof(lua_State, base), &base) ||
      !ljp_load(L + offsetof(lua_State, cframe), &cframe))
    return 0;
  cframe &= (uint64_t)(int64_t)CFRAME_RAWMASK;
  ljp_load(base - 8, &link);
  ljp_load(cframe + LJP_CF_PC * 8, &pc);
  return (base ^ link << 17 ^ link >> 47) * 31 + pc;
}
