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

static inline struct ljp_vm *ljp_vm_of_global(const global_State *g)
{
  return ljp_vm_at(G2GG(g)->ljp);
}

static inline struct ljp_vm *ljp_vm_of_thread(const lua_State *L)
{
  return ljp_vm_of_global(G(L));
}

static inline struct ljp_vm *ljp_vm_of_jit(const jit_State *J)
{
  return ljp_vm_at(J2GG(J)->ljp);
}

#endif
