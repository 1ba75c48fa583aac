/*
** The VMs that have memory in the table of live blocks. One thread a profile.
*/
#include "parsers/base/array.h"
#include "parsers/profile/pass.h"

uint32_t ljp_memory_find_vm(struct ljp_memory_sums *sums, uint64_t id)
{
  if (LJP_LIKELY(sums->vm_last < sums->vm_count &&
                 sums->vms[sums->vm_last].id == id))
    return sums->vm_last;
  for (uint32_t i = sums->vm_count; id && i-- > 1;)
    if (sums->vms[i].id == id)
      return sums->vm_last = i;
  return 0;
}

enum ljp_status ljp_memory_take_vm(struct ljp_profile *p, uint64_t id,
                                   uint32_t *vm)
{
  struct ljp_memory_sums *sums = &p->pass->memory;
  if ((*vm = ljp_memory_find_vm(sums, id)))
    return LJP_OK;
  if (sums->vm_count &&
      (!id || (!sums->vm_free && sums->vm_count == LJP_MEMORY_VMS)))
    return LJP_OK; /* number 0 */
  if (sums->vm_free) {
    *vm = sums->vm_free;
    sums->vm_free = sums->vms[*vm].cycle;
  } else {
    if (!ljp_array_reserve(&sums->vms, sums->vm_count, &sums->vm_room,
                           sizeof *sums->vms))
      return LJP_ERR_MEM;
    *vm = sums->vm_count++;
  }
  sums->vms[*vm] = (struct ljp_memory_vm){.id = *vm ? id : 0};
  if (*vm || !id) {
    sums->vm_last = *vm;
    return LJP_OK;
  }
  return ljp_memory_take_vm(p, id, vm); /* number 0 was made first */
}

enum ljp_status ljp_profile_take_held(struct ljp_profile *p,
                                      const struct ljp_rec_held *held)
{
  struct ljp_memory_sums *sums = &p->pass->memory;
  enum ljp_status status;
  uint32_t vm;
  if (p->pass->placed == 1) { /* In a merge, later ones repeat what was read. */
    p->totals.held_sessions += !p->pass->held_seen;
    p->pass->held_seen = true;
    p->totals.held_left_out += !(held->flags & LJP_HELD_KEPT);
    p->totals.held_told += held->blocks;
  }
  if (!held->vm)
    return LJP_OK;
  p->has_gc = true;
  if (held->flags & LJP_HELD_CLOSED || ljp_memory_find_vm(sums, held->vm))
    return LJP_OK;
  status = ljp_memory_take_vm(p, held->vm, &vm);
  if (status || !vm)
    return status;
  struct ljp_memory_vm *v = &sums->vms[vm];
  v->cycle = v->first_cycle = (uint32_t)held->cycle;
  v->open = true;
  sums->open++;
  return LJP_OK;
}
