/*
** The part of the table of VMs that signal handlers use; see vms.h. LJP_SIGSAFE
** throughout.
*/
#include "profilers/session/vms.h"

struct ljp_vms_entry ljp_vms[LJP_VMS];

uint32_t ljp_vms_claim(uint32_t number, bool *claimed)
{
  *claimed = false;
  if (!number)
    return 0;
  uint32_t room = LJP_VMS;
  for (uint32_t i = 0; i < LJP_VMS; i++) {
    uint32_t at = (number + i) % LJP_VMS;
    /* Acquire: pairs with the update's release of a new id. */
    uint32_t there =
        atomic_load_explicit(&ljp_vms[at].number, memory_order_acquire);
    if (LJP_LIKELY(there == number))
      return atomic_load_explicit(&ljp_vms[at].id, memory_order_acquire);
    if (!there && room == LJP_VMS)
      room = at;
  }
  uint32_t none = 0;
  *claimed = room < LJP_VMS && atomic_compare_exchange_strong(
                                   &ljp_vms[room].number, &none, number);
  return 0;
}
