/*
** See held.h.
** Invariant: at most half of the slots are used, so each probe ends.
*/
#include "src/writer/held.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/assert.h"

enum { FIRST_SLOTS = 64, FIRST_VMS = 4 };

void ljp_held_fini(struct ljp_held *held)
{
  free(held->slots);
  free(held->vms);
  *held = (struct ljp_held){0};
}

void ljp_held_stop(struct ljp_held *held)
{
  free(held->slots);
  held->slots = NULL;
  held->count = held->mask = 0;
  for (uint32_t i = 0; i < held->vm_count; i++)
    held->vms[i].blocks = 0;
}

static struct ljp_held_vm *held_find_vm(struct ljp_held *held, uint32_t vm)
{
  if (held->vm_last < held->vm_count && held->vms[held->vm_last].vm == vm)
    return &held->vms[held->vm_last];
  for (uint32_t i = 0; i < held->vm_count; i++)
    if (held->vms[i].vm == vm) {
      held->vm_last = i;
      return &held->vms[i];
    }
  return NULL;
}

/* Finds the VM or adds it. NULL: there is no memory, or there are too many. */
static struct ljp_held_vm *held_vm(struct ljp_held *held, uint32_t vm)
{
  struct ljp_held_vm *found = held_find_vm(held, vm);
  if (found)
    return found;
  if (held->vm_count == held->vm_room) {
    uint32_t room = held->vm_room ? 2 * held->vm_room : FIRST_VMS;
    struct ljp_held_vm *vms =
        room <= LJP_HELD_VMS ? realloc(held->vms, room * sizeof *vms) : NULL;
    if (!vms)
      return NULL;
    held->vms = vms;
    held->vm_room = room;
  }
  held->vm_last = held->vm_count++;
  held->vms[held->vm_last] = (struct ljp_held_vm){.vm = vm};
  return &held->vms[held->vm_last];
}

/* The slot of an address, or the free one where it belongs. */
static struct ljp_held_block *held_slot(struct ljp_held_block *slots,
                                        uint32_t mask, uint64_t address)
{
  uint32_t at =
      (uint32_t)((address >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
  while (slots[at].address && slots[at].address != address)
    at = (at + 1) & mask;
  return &slots[at];
}

static bool held_grow(struct ljp_held *held)
{
  uint32_t slots = held->slots ? 2 * (held->mask + 1) : FIRST_SLOTS;
  struct ljp_held_block *fresh =
      slots <= 2 * (uint32_t)LJP_HELD_MAX ? calloc(slots, sizeof *fresh) : NULL;
  if (!fresh)
    return false;
  for (uint32_t i = 0; held->slots && i <= held->mask; i++)
    if (held->slots[i].address)
      *held_slot(fresh, slots - 1, held->slots[i].address) = held->slots[i];
  free(held->slots);
  held->slots = fresh;
  held->mask = slots - 1;
  return true;
}

/* Blocks behind the hole that would no longer be found move up. */
static void held_remove(struct ljp_held *held, uint32_t hole)
{
  struct ljp_held_block *slots = held->slots;
  struct ljp_held_vm *vm = held_find_vm(held, slots[hole].vm);
  ljp_assert(slots[hole].address && vm && vm->blocks && held->count);
  vm->blocks--;
  held->count--;
  slots[hole].address = 0;
  for (uint32_t at = (hole + 1) & held->mask; slots[at].address;
       at = (at + 1) & held->mask) {
    const struct ljp_held_block block = slots[at];
    slots[at].address = 0;
    *held_slot(slots, held->mask, block.address) = block;
  }
}

void ljp_held_put(struct ljp_held *held, const struct ljp_held_block *block)
{
  if (!ljp_held_is_kept(held) || !block->address)
    return;
  ljp_held_take(held, block->address);
  struct ljp_held_vm *vm = held_vm(held, block->vm);
  if (!vm ||
      ((!held->slots || held->count > held->mask / 2) && !held_grow(held))) {
    held->full = true;
    ljp_held_stop(held);
    return;
  }
  struct ljp_held_block *to =
      held_slot(held->slots, held->mask, block->address);
  *to = *block;
  to->cycle = vm->cycle;
  vm->blocks++;
  held->count++;
}

void ljp_held_take(struct ljp_held *held, uint64_t address)
{
  if (!held->slots || !address)
    return;
  struct ljp_held_block *at = held_slot(held->slots, held->mask, address);
  if (at->address)
    held_remove(held, (uint32_t)(at - held->slots));
}

void ljp_held_see_cycle(struct ljp_held *held, uint32_t vm, uint64_t cycle)
{
  struct ljp_held_vm *v = held->wanted ? held_vm(held, vm) : NULL;
  if (v)
    v->cycle = cycle;
}

/* A removal moves only blocks that come later, or, at the table's end, blocks of
** its beginning, which have been looked at. */
void ljp_held_close_vm(struct ljp_held *held, uint32_t vm)
{
  struct ljp_held_vm *v = held_find_vm(held, vm);
  if (!v)
    return;
  for (uint32_t i = 0; v->blocks && i <= held->mask;)
    if (held->slots[i].address && held->slots[i].vm == vm)
      held_remove(held, i);
    else
      i++;
  v->closed = true;
}

void ljp_held_forget_vm(struct ljp_held *held, uint32_t vm)
{
  ljp_held_close_vm(held, vm);
  for (uint32_t i = 0; i < held->vm_count; i++)
    if (held->vms[i].vm == vm) {
      ljp_assert(!held->vms[i].blocks);
      held->vms[i] = held->vms[--held->vm_count];
      return;
    }
}
