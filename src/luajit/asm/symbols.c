/*
** Names of the VM's routines by address; for tests and for tables.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_vm.h"

#include "src/luajit/frames.h"

#include "vmmap_names.inc"

const char *ljp_guest_vm_symbol(uint64_t rip, uint32_t *offset)
{
  uint64_t at = rip - (uint64_t)(uintptr_t)lj_vm_asm_begin;
  if (!ljp_guest_in_vm(rip))
    return NULL;
  unsigned low = 0, high = sizeof vmmap_names / sizeof vmmap_names[0];
  while (high - low > 1) {
    unsigned mid = (low + high) / 2;
    if (vmmap_names[mid].offset <= at)
      low = mid;
    else
      high = mid;
  }
  *offset = (uint32_t)(at - vmmap_names[low].offset);
  return vmmap_names[low].name;
}
