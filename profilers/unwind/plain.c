/*
** Plain steps: what the CFI says of one return address, for callers that take
** the same step again and again (the memory profiler). The CFI is read from the
** object itself, so no table is needed.
** Safety: ordinary code, with a borrowed map.
*/
#include "profilers/unwind/step.h"
#include "profilers/unwind/table.h"
#include "src/base/saferead.h"

/* The object that holds a code address, if its header has been read. */
static const struct ljp_unwind_object *
plain_object(const struct ljp_unwind_map *map, uint64_t address)
{
  const struct ljp_unwind_range *range = ljp_unwind_find_range(map, address, 0);
  const struct ljp_unwind_object *object = range ? range->object : NULL;
  /* acquire: pairs with the release after the header has been read. */
  if (!object || !atomic_load_explicit(&object->ready, memory_order_acquire) ||
      !object->header)
    return NULL;
  return object;
}

uint64_t ljp_unwind_witness_of(const struct ljp_unwind_map *map,
                               uint64_t address)
{
  const struct ljp_unwind_object *object = plain_object(map, address);
  return object ? ljp_unwind_witness_address(object->header) : 0;
}

bool ljp_unwind_plain_step(const struct ljp_unwind_map *map, uint64_t rip,
                           struct ljp_unwind_plain *plain,
                           struct ljp_unwind_room *room)
{
  const struct ljp_unwind_object *object = plain_object(map, rip - 1);
  struct ljp_unwind_rule rule;
  struct ljp_cfi_found *found = (struct ljp_cfi_found *)(void *)room;
  if (!object)
    return false;
  plain->witness_at = ljp_unwind_witness_address(object->header);
  if (!ljp_safe_load((const void *)(uintptr_t)plain->witness_at,
                     &plain->witness) ||
      plain->witness != object->witness ||
      ljp_unwind_find_cfi(object, rip - 1, found) ||
      found->fde.end == rip) /* maybe planted: a step has to look */
    return false;
  ljp_unwind_make_rule(&found->machine.row, found->cie.signal, &rule);
  if (rule.kind != LJP_RULE_REGULAR ||
      (rule.base != LJP_RSP && rule.base != LJP_RBP))
    return false;
  plain->cfa = rule.cfa_offset;
  plain->from_rbp = rule.base == LJP_RBP;
  plain->rbx = plain->rbp = plain->r14 = 0;
  for (int i = 0; i < LJP_RULE_SAVED; i++) {
    if (!(rule.saved >> i & 1))
      continue;
    if (ljp_rule_saved[i] == LJP_RBX)
      plain->rbx = rule.slot[i];
    else if (ljp_rule_saved[i] == LJP_RBP)
      plain->rbp = rule.slot[i];
    else if (ljp_rule_saved[i] == LJP_R14)
      plain->r14 = rule.slot[i];
  }
  return true;
}
