/*
** The VM that LuaJIT's own structures belong to, for hooks and other code on
** the VM's own thread. NULL: the VM has no entry (there was no memory for one).
*/
#ifndef LJP_VM_OF_H
#define LJP_VM_OF_H

#include "lj_obj.h"
#include "lj_jit.h"
#include "lj_dispatch.h"

#include "src/luajit/vm/vms.h"

static inline struct ljp_vm *ljp_vm_of_gg(const GG_State *gg)
{
  /* The field is ours, so an index in it is valid. Most processes have few
  ** VMs. */
  uint32_t index = gg->ljp;
  if (LJP_LIKELY(index - 1 < LJP_VM_CHUNK - 1))
    return &ljp_vm_first_chunk[index];
  return ljp_vm_at(index);
}

static inline struct ljp_vm *ljp_vm_of_global(const global_State *g)
{
  return ljp_vm_of_gg(G2GG(g));
}

static inline struct ljp_vm *ljp_vm_of_thread(const lua_State *L)
{
  return ljp_vm_of_global(G(L));
}

static inline struct ljp_vm *ljp_vm_of_jit(const jit_State *J)
{
  return ljp_vm_of_gg(J2GG(J));
}

#endif
