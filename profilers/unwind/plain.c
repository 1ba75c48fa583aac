/*
** Plain steps: what the frame information says of one return address, for who
** takes the same step again and again (the memory profiler). It is read from
** the object itself, so it needs no table. Ordinary code, with a view.
*/
#include "profilers/unwind/priv.h"

#include "src/base/saferead.h"

/* One whose header has been read. */
static struct ljp_unwind_object *object_of(const struct ljp_unwind_view *view,
                                           uint64_t address)
{
  for (uint32_t i = 0; i < view->ranges_count; i++) {
    struct ljp_unwind_object *object = view->ranges[i].object;
    if (address - view->ranges[i].lo < view->ranges[i].hi - view->ranges[i].lo)
      /* Acquire: pairs with the release once that has been done. */
      return object &&
                     atomic_load_explicit(&object->ready,
                                          memory_order_acquire) &&
                     object->header
                 ? object
                 : NULL;
  }
  return NULL;
}

uint64_t ljp_unwind_witness_of(const struct ljp_unwind_view *view,
                               uint64_t address)
{
  const struct ljp_unwind_object *object = object_of(view, address);
  return object ? ljp_unwind_witness_at(object->header) : 0;
}

bool ljp_unwind_plain(const struct ljp_unwind_view *view, uint64_t rip,
                      struct ljp_unwind_plain *plain)
{
  struct ljp_unwind_object *object = object_of(view, rip - 1);
  struct ljp_unwind_rule rule;
  struct ljp_found found;
  if (!object)
    return false;
  plain->witness_at = ljp_unwind_witness_at(object->header);
  if (!ljp_safe_load((const void *)(uintptr_t)plain->witness_at,
                     &plain->witness) ||
      plain->witness != object->witness ||
      ljp_unwind_find(object, rip - 1, &found) ||
      found.fde.end == rip) /* might be planted: a step looks closer */
    return false;
  ljp_unwind_make_rule(&found.machine.row, found.cie.signal, &rule);
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
