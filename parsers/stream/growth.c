/*
** The growth of heaps; see growth.h.
*/
#include "parsers/stream/growth.h"

#include <string.h>

#include "parsers/base/array.h"
#include "parsers/stream/item.h"

enum growth_seen { SEEN_DEFINED = 1, SEEN_FOLLOWED = 2 };
enum { IDS_MAX = 1 << 22 };

void ljp_growth_fini(struct ljp_growth *b)
{
  free(b->vms);
  free(b->seen);
  *b = (struct ljp_growth){0};
}

/* Counts the VM in *count if this is new about it. */
static enum ljp_status growth_see(struct ljp_growth *b, uint64_t id,
                                  enum growth_seen what, uint64_t *count)
{
  if (id == 0 || id >= IDS_MAX)
    return LJP_OK;
  if (id >= b->seen_room) {
    uint32_t room = b->seen_room ? b->seen_room : 64;
    while (room <= id)
      room *= 2;
    uint8_t *more = realloc(b->seen, room);
    if (!more)
      return LJP_ERR_MEM;
    memset(more + b->seen_room, 0, room - b->seen_room);
    b->seen = more;
    b->seen_room = room;
  }
  *count += !(b->seen[id] & what);
  b->seen[id] |= (uint8_t)what;
  return LJP_OK;
}

/* *vm is NULL if there are too many. */
static enum ljp_status growth_vm(struct ljp_growth *b, uint64_t id,
                                 struct ljp_growth_vm **vm)
{
  *vm = NULL;
  if (LJP_UNLIKELY(b->last >= b->count || b->vms[b->last].id != id)) {
    b->last = b->count;
    while (b->last > 0 && b->vms[b->last - 1].id != id)
      b->last--;
    if (b->last) {
      b->last--;
    } else if (b->count == LJP_GROWTH_VMS) {
      b->incomplete = true;
      return LJP_OK;
    } else {
      if (!ljp_array_reserve(&b->vms, b->count, &b->room, sizeof *b->vms))
        return LJP_ERR_MEM;
      b->last = b->count++;
      b->vms[b->last] = (struct ljp_growth_vm){.id = id};
    }
  }
  *vm = &b->vms[b->last];
  return LJP_OK;
}

static void growth_add(const struct ljp_growth_vm *vm, uint64_t *counted,
                       uint64_t *events, uint64_t *unequal, uint64_t *first)
{
  if (!vm->has_heap)
    return;
  uint64_t growth = vm->heap_last - vm->heap_first;
  *counted += growth;
  *events += vm->then;
  if (growth == vm->then)
    return;
  if (!(*unequal)++)
    *first = vm->id;
}

static void growth_close(struct ljp_growth *b, struct ljp_growth_vm *vm)
{
  growth_add(vm, &b->counted, &b->events, &b->unequal, &b->first_unequal);
  *vm = b->vms[--b->count];
}

static enum ljp_status growth_take_gc(struct ljp_growth *b,
                                      const struct ljp_rec_gc *gc)
{
  struct ljp_growth_vm *vm;
  enum ljp_status status = growth_vm(b, gc->vm, &vm);
  if (!status)
    status = growth_see(b, gc->vm, SEEN_DEFINED, &b->defined);
  if (!status)
    status = growth_see(b, gc->vm, SEEN_FOLLOWED, &b->followed);
  if (status || !vm)
    return status;
  if (!vm->has_heap) {
    vm->heap_first = gc->heap_bytes;
    vm->events = 0;
  }
  vm->has_heap = true;
  vm->heap_last = gc->heap_bytes;
  vm->then = vm->events;
  if (gc->phase == LJP_GC_CLOSED)
    growth_close(b, vm);
  return LJP_OK;
}

static enum ljp_status growth_take_mem(struct ljp_growth *b,
                                       const struct ljp_rec_mem *mem)
{
  struct ljp_growth_vm *vm;
  enum ljp_status status = growth_vm(b, mem->vm, &vm);
  b->sampled = b->sampled || mem->weight;
  if (status || !vm || mem->flags & LJP_MEM_FAILED)
    return status;
  if (mem->op == LJP_MEM_FREE)
    vm->events -= mem->size;
  else
    vm->events += mem->size;
  if (mem->op == LJP_MEM_REALLOC)
    vm->events -= mem->old_size;
  return LJP_OK;
}

enum ljp_status ljp_growth_take(struct ljp_growth *b,
                                const struct ljp_item *item)
{
  if (item->what == LJP_REC_MEM)
    return growth_take_mem(b, &item->u.mem);
  if (item->what == LJP_REC_GC)
    return growth_take_gc(b, &item->u.gc);
  if (item->what == LJP_REC_HELD)
    return growth_see(b, item->u.held.vm, SEEN_FOLLOWED, &b->followed);
  if (item->what == LJP_REC_PRODUCER &&
      item->u.producer.kind == LJP_PRODUCER_MEMORY && item->u.producer.interval)
    b->sampled = true;
  if (item->what == LJP_REC_VM)
    return growth_see(b, item->u.vm.id, SEEN_DEFINED, &b->defined);
  return LJP_OK;
}

void ljp_growth_next(struct ljp_growth *b)
{
  while (b->count)
    growth_close(b, &b->vms[b->count - 1]);
  if (b->seen)
    memset(b->seen, 0, b->seen_room);
}

struct ljp_growth_sums ljp_growth_sums(const struct ljp_growth *b)
{
  uint64_t counted = b->counted, events = b->events;
  struct ljp_growth_sums sums = {.vms = b->defined,
                                 .followed = b->followed,
                                 .unequal = b->unequal,
                                 .first_unequal = b->first_unequal};
  for (uint32_t i = 0; i < b->count; i++)
    growth_add(&b->vms[i], &counted, &events, &sums.unequal,
               &sums.first_unequal);
  sums.counted = (int64_t)counted;
  sums.events = (int64_t)events;
  sums.comparable = b->followed && !b->sampled && !b->incomplete;
  return sums;
}
