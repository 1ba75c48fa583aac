/*
** What the VM says about its memory: how much is in use, what the collector is
** doing, what a block is for. Use on the VM's own thread, in ordinary code.
*/
#define LUA_CORE

#include <pthread.h>
#include <stdlib.h>

#include "lj_obj.h"
#include "lj_alloc.h"
#include "lj_gc.h"
#include "lj_jit.h"
#include "lj_dispatch.h"

#include "src/luajit/heap.h"
#include "src/luajit/publish.h"
#include "src/luajit/vm/vm_of.h"

#include "host_sizes.inc"

_Static_assert(GCSpause == 0 && GCSpropagate == 1 && GCSatomic == 2 &&
                   GCSsweepstring == 3 && GCSsweep == 4 && GCSfinalize == 5,
               "the format's phases are LuaJIT's");

_Static_assert(sizeof(((global_State *)0)->gc.threshold) == 8, "gc_step");

bool ljp_guest_heap(lua_State *L, struct ljp_guest_heap *heap)
{
  global_State *g = G(L);
  heap->main = mainthread(g);
  heap->g = (uint64_t)(uintptr_t)g;
  heap->gc_phase = &g->gc.state;
  heap->bytes = &g->gc.total;
  heap->gc_step = &g->gc.threshold;
  heap->vmstate = (const int32_t *)&g->vmstate;
  heap->running = &g->cur_L.gcptr64;
  return L2GG(L)->ljp != 0;
}

/* -- Labels ----------------------------------------------------------------- */

_Static_assert(offsetof(lua_State, cframe) == LJP_GUEST_CFRAME_AT &&
                   offsetof(lua_State, ljp_labels) == LJP_GUEST_LABELS_AT &&
                   LJP_GUEST_LABELS_AT % 8 == 4,
               "in the padding behind stacksize");

uint32_t ljp_guest_labels(lua_State *L)
{
  return L->ljp_labels;
}

void ljp_guest_set_labels(lua_State *L, uint32_t labels)
{
  L->ljp_labels = labels;
  /* Relaxed: this thread has counted its own VM. */
  if (LJP_UNLIKELY(atomic_load_explicit(&ljp_publishing, memory_order_relaxed)))
    ljp_guest_publish_change(L);
}

/* -- The allocator --------------------------------------------------------- */

static struct {
  void *_Atomic ud; /* NULL: nobody listens; otherwise the rest is valid */
  void (*refused)(void *ctx, size_t nb);
  void *ctx;
} refusals;

void ljp_guest_listen_refused(void *ud, void (*refused)(void *ctx, size_t nb),
                              void *ctx)
{
  atomic_store(&refusals.ud, NULL);
  refusals.refused = refused;
  refusals.ctx = ctx;
  atomic_store(&refusals.ud, ud);
}

/* lj_alloc.h declares it only where LuaJIT's own allocator is built. */
void ljp_hook_refused(void *msp, size_t nb);
void ljp_hook_refused(void *msp, size_t nb)
{
  /* Relaxed: the thread that uses this allocator has set it. Users of other
  ** allocators, on threads of their own, read nothing else. */
  if (msp == atomic_load_explicit(&refusals.ud, memory_order_relaxed))
    refusals.refused(refusals.ctx, nb);
}

bool ljp_guest_owns_allocator(const struct ljp_guest_heap *heap)
{
#ifdef LUAJIT_USE_SYSMALLOC
  (void)heap;
  return false;
#else
  return ((global_State *)(uintptr_t)heap->g)->allocf == lj_alloc_f;
#endif
}

#ifdef LUAJIT_USE_SYSMALLOC
/* There is no such allocator, and these functions are never called. */
LJ_FUNC void *lj_alloc_malloc(void *ud, size_t size);
LJ_FUNC void *lj_alloc_free(void *ud, void *ptr);
void *lj_alloc_malloc(void *ud, size_t size)
{
  (void)ud;
  (void)size;
  return NULL;
}

void *lj_alloc_free(void *ud, void *ptr)
{
  (void)ud;
  (void)ptr;
  return NULL;
}
#else
_Static_assert(LJP_GUEST_BLOCK_FLAG == LJP_BLOCK_FLAG, "patch 0008");
#endif

/* -- The state of the VM --------------------------------------------------- */

const uint8_t ljp_guest_states[16] = {
    [LJ_VMST_INTERP] = LJP_VMSTATE_INTERP, [LJ_VMST_C] = LJP_VMSTATE_C,
    [LJ_VMST_GC] = LJP_VMSTATE_GC,         [LJ_VMST_EXIT] = LJP_VMSTATE_EXIT,
    [LJ_VMST_RECORD] = LJP_VMSTATE_RECORD, [LJ_VMST_OPT] = LJP_VMSTATE_OPT,
    [LJ_VMST_ASM] = LJP_VMSTATE_ASM,
};
_Static_assert(~LJ_VMST_GC == LJP_GUEST_COLLECTS, "what it leaves there");
_Static_assert(LJ_VMST__MAX <= 16 && LJP_VMSTATE_UNKNOWN == 0,
               "others are not known");

bool ljp_guest_set_resizing(const struct ljp_guest_heap *heap, bool resizing)
{
  struct ljp_vm *vm = ljp_vm_of_thread(heap->main);
  if (!vm)
    return false;
  bool was = atomic_load_explicit(&vm->resizing, memory_order_relaxed);
  if (was != resizing)
    atomic_store_explicit(&vm->resizing, resizing, memory_order_relaxed);
  return was;
}

/* -- What memory is for ---------------------------------------------------- */

/* Symbols under other names, because they are declared here without their
** types. */
#define LJP_X(function, bytes, name)                                           \
  extern const char at_##function[] __asm__(#function)                         \
      __attribute__((visibility("hidden")));
LJP_HOST_TYPES(LJP_X)
#undef LJP_X

struct range {
  const char *start;
  uint32_t bytes;
  enum ljp_mem_type type;
};

#define LJP_X(function, bytes, name) +1
enum { RANGES = 0 LJP_HOST_TYPES(LJP_X) };
#undef LJP_X

/* Filled, and sorted by address, when first needed. A constant table of
** addresses would have to be relocated each time the library is loaded. */
static struct range ranges[RANGES];

static int heap_by_start(const void *a, const void *b)
{
  uint64_t x = (uint64_t)(uintptr_t)((const struct range *)a)->start;
  uint64_t y = (uint64_t)(uintptr_t)((const struct range *)b)->start;
  return x < y ? -1 : x > y;
}

static void heap_make_ranges(void)
{
  struct range *next = ranges;
#define LJP_X(function, bytes, name)                                           \
  *next++ = (struct range){at_##function, bytes, LJP_MEM_TYPE_##name};
  LJP_HOST_TYPES(LJP_X)
#undef LJP_X
  qsort(ranges, RANGES, sizeof *ranges, heap_by_start);
}

static enum ljp_mem_type heap_type_at(uint64_t address)
{
  size_t low = 0, high = RANGES;
  while (low < high) {
    size_t mid = (low + high) / 2;
    uint64_t start = (uint64_t)(uintptr_t)ranges[mid].start;
    if (address - start < ranges[mid].bytes)
      return ranges[mid].type;
    if (address < start)
      high = mid;
    else
      low = mid + 1;
  }
  return LJP_MEM_TYPE_NONE;
}

enum ljp_mem_type ljp_guest_mem_type(const uint64_t *addresses, unsigned count,
                                     bool *object)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, heap_make_ranges);
  *object = count && addresses[0] - (uint64_t)(uintptr_t)&lj_mem_newgco <
                         LJP_SIZE_lj_mem_newgco;
  for (unsigned i = 0; i < count; i++) {
    enum ljp_mem_type type = heap_type_at(addresses[i]);
    if (type)
      return type;
  }
  return LJP_MEM_TYPE_OTHER;
}

_Static_assert(offsetof(GChead, gct) == LJP_GUEST_OBJECT_TAG_AT, "GChead");
const uint8_t ljp_guest_object_types[LJP_GUEST_OBJECT_TAGS] = {
    [0 ... ~LJ_TSTR - 1] = LJP_MEM_TYPE_OTHER, /* no objects */
    [~LJ_TSTR] = LJP_MEM_TYPE_STRING,
    [~LJ_TUPVAL] = LJP_MEM_TYPE_UPVALUE,
    [~LJ_TTHREAD] = LJP_MEM_TYPE_THREAD,
    [~LJ_TPROTO] = LJP_MEM_TYPE_PROTO,
    [~LJ_TFUNC] = LJP_MEM_TYPE_FUNCTION,
    [~LJ_TTRACE] = LJP_MEM_TYPE_TRACE,
    [~LJ_TCDATA] = LJP_MEM_TYPE_CDATA,
    [~LJ_TTAB] = LJP_MEM_TYPE_TABLE,
    [~LJ_TUDATA] = LJP_MEM_TYPE_USERDATA,
};
_Static_assert(~LJ_TUDATA + 1 == LJP_GUEST_OBJECT_TAGS, "all of them");

/* A hash part is 2^n nodes, each of which links to another node or to none. An
** array part never has that size, except for slots 0 to 2; and its third slot
** would have to hold the number 0 to look like a node's link. */
enum ljp_mem_type ljp_guest_part_type(uint64_t address, uint64_t bytes)
{
  uint64_t nodes = bytes / sizeof(Node);
  if (bytes % sizeof(Node) || (nodes & (nodes - 1)))
    return LJP_MEM_TYPE_ARRAY_PART;
  const Node *node = (const Node *)(uintptr_t)address;
  for (uint64_t i = 0; i < nodes; i++) {
    uint64_t next = mrefu(node[i].next);
    if (next && next - address >= bytes)
      return LJP_MEM_TYPE_ARRAY_PART;
  }
  return LJP_MEM_TYPE_HASH_PART;
}
