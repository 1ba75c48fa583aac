/*
** See coroutines.h. A VM's objects are in one list, newest first; the main
** thread is its last one. While it is read, the VM may add objects at its head,
** and the collector may free objects in it: then the next word leads elsewhere,
** and the header that is read there is checked like any other.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_frame.h"

#include "src/base/clock.h"
#include "src/luajit/coroutines.h"
#include "src/luajit/frames/walk.h"

enum { CLOCK_EVERY = 1024 };

/* -- Frames ---------------------------------------------------------------- */

uint32_t ljp_lua_frames(const struct ljp_lua_from *from,
                        struct ljp_lua_frame *out, uint32_t room,
                        enum ljp_cut *cut)
{
  struct ljp_thread thread;
  uint64_t word, slot, value;
  uint32_t count = 0;
  struct ljp_link link = {.base = from->base, .pc = from->pc};
  bool skip = false;
  *cut = LJP_CUT_BAD_READ;
  if (!ljp_thread_read(&thread, from->L) ||
      (!link.base &&
       !ljp_load(from->L + offsetof(lua_State, base), &link.base)))
    return 0;
  for (;;) {
    struct ljp_stack one = {.frames = &word, .limit = 1};
    *cut = LJP_CUT_BAD_FRAME;
    if (!ljp_thread_has_base(&thread, link.base))
      return count;
    *cut = LJP_CUT_NONE;
    if (ljp_thread_at_bottom(&thread, link.base))
      return count;
    *cut = LJP_CUT_DEPTH;
    if (count == room)
      return count;
    *cut = LJP_CUT_BAD_READ;
    if (!ljp_load(link.base - sizeof(TValue), &value) ||
        !ljp_load(link.base - 2 * sizeof(TValue), &slot))
      return count;
    struct ljp_function fn;
    if (!skip && ljp_function_read(slot, &fn) && ljp_emit(&one, &fn, link.pc)) {
      bool lua = fn.ffid == FF_LUA;
      out[count++] = (struct ljp_lua_frame){
          .word = word,
          .base = link.base,
          .proto = lua ? fn.proto : 0,
          .pc = lua && link.pc && ljp_function_has_pc(&fn, link.pc) ? link.pc
                                                                    : 0};
    }
    *cut = LJP_CUT_BAD_FRAME;
    if (!ljp_link_follow(&thread, link.base, value, &link))
      return count;
    skip = link.same && !skip;
  }
}

/* -- The thread that runs -------------------------------------------------- */

/* The interpreter's registers, as vm_x64.dasc has them. */
enum { REG_BASE = LJP_RDX, REG_PC = LJP_RBX };

bool ljp_lua_running(uint64_t g, const struct ljp_regs *regs,
                     struct ljp_lua_from *from)
{
  uint32_t state;
  uint64_t cframe;
  *from = (struct ljp_lua_from){0};
  if (!ljp_vm_of(g) ||
      !ljp_load32(g + offsetof(global_State, vmstate), &state) ||
      (int32_t)state >= 0 ||
      !ljp_load(g + offsetof(global_State, cur_L), &from->L) || !from->L)
    return false;
  if (ljp_guest_in_vm(regs->r[LJP_RIP])) {
    from->base = KNOWN(regs, REG_BASE) ? regs->r[REG_BASE] : 0;
    from->pc = KNOWN(regs, REG_PC) ? regs->r[REG_PC] : 0;
  } else if (ljp_load(from->L + offsetof(lua_State, cframe), &cframe)) {
    cframe &= (uint64_t)CFRAME_RAWMASK;
    if (!cframe || !ljp_load(cframe + LJP_CF_PC * 8, &from->pc))
      from->pc = 0;
  }
  return true;
}

/* The interpreter's stack pointer is its C frame, so what it calls returns by the
** word below. */
bool ljp_lua_return(uint64_t low, uint64_t high, struct ljp_regs *regs)
{
  uint64_t nearest = high, L, cframe, rip;
  for (const struct ljp_vm *vm = ljp_vm_next(NULL); vm; vm = ljp_vm_next(vm)) {
    uint64_t g = atomic_load(&vm->g);
    if (!ljp_load(g + offsetof(global_State, cur_L), &L) || !L ||
        !ljp_load(L + offsetof(lua_State, cframe), &cframe))
      continue;
    cframe &= (uint64_t)CFRAME_RAWMASK;
    if (cframe > low && cframe < nearest)
      nearest = cframe;
  }
  if (nearest == high || !ljp_load(nearest - 8, &rip) || !ljp_guest_in_vm(rip))
    return false;
  *regs = (struct ljp_regs){.known = 1u << LJP_RSP | 1u << LJP_RIP};
  regs->r[LJP_RSP] = nearest;
  regs->r[LJP_RIP] = rip;
  return true;
}

/* -- The search ------------------------------------------------------------ */

/* Is the Lua thread suspended? Its fields are read one by one, so it may be
** none of this by now. */
static bool search_is_suspended(uint64_t L, uint64_t header,
                                struct ljp_lua_coroutine *out)
{
  struct ljp_thread thread;
  uint64_t base, top, cframe;
  uint8_t status = (uint8_t)(header >> 24);
  _Static_assert(offsetof(lua_State, status) == offsetof(GChead, marked) + 3,
                 "the status is in the header's word");
  if (status > LUA_YIELD || !ljp_thread_read(&thread, L) ||
      !ljp_load(L + offsetof(lua_State, base), &base) ||
      !ljp_load(L + offsetof(lua_State, top), &top) ||
      !ljp_load(L + offsetof(lua_State, cframe), &cframe) || cframe ||
      !ljp_thread_has_base(&thread, base))
    return false;
  out->L = L;
  out->vm = thread.vm->number;
  out->started = status == LUA_YIELD;
  /* One that has not begun has its function on its stack; one that is over,
  ** nothing. */
  struct ljp_stack one = {.frames = &out->function, .limit = 1};
  struct ljp_function fn;
  uint64_t slot;
  out->function = 0;
  return out->started ||
         (ljp_thread_at_bottom(&thread, base) && top > base &&
          ljp_load(base, &slot) && ljp_function_read(slot, &fn) &&
          ljp_emit(&one, &fn, 0));
}

/* False: the search is over. */
static bool search_vm(struct ljp_lua_search *s, uint64_t g)
{
  uint64_t object, header, next;
  uint64_t main_thread = 0;
  ljp_load(g + offsetof(global_State, mainthref), &main_thread);
  if (!ljp_load(g + offsetof(global_State, gc.root), &object))
    return true; /* the VM has gone */
  for (; object; object = next) {
    struct ljp_lua_coroutine found;
    if (!ljp_load(object, &next) || !ljp_header_read(object, &header)) {
      s->whole = false;
      return true;
    }
    if (++s->objects % CLOCK_EVERY == 0 && ljp_clock_ns() > s->until_ns)
      return false;
    if (LJP_HEADER_GCT(header) != (uint8_t)~LJ_TTHREAD ||
        object == main_thread || !search_is_suspended(object, header, &found))
      continue;
    if (s->found == s->most)
      return false;
    s->found++;
    if (!s->each(s->ctx, &found))
      return false;
  }
  return true;
}

void ljp_lua_search(struct ljp_lua_search *search)
{
  search->objects = search->found = 0;
  search->whole = true;
  for (const struct ljp_vm *vm = ljp_vm_next(NULL); vm; vm = ljp_vm_next(vm))
    if (!search_vm(search, atomic_load(&vm->g))) {
      search->whole = false;
      return;
    }
}
