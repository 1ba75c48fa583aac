/*
** What the VM is doing while it runs C code of its own, from the function that
** a host frame lies in. LJP_SIGSAFE.
*/
#define LUA_CORE

#include "lj_obj.h"

#include "src/luajit/frames.h"

#include "host_sizes.inc"

#define LJP_X(function, state) extern void function(void);
LJP_HOST_STATES(LJP_X)
#undef LJP_X

enum ljp_vmstate ljp_guest_host_state(uint64_t rip)
{
#define LJP_X(function, state)                                                 \
  if (rip - (uint64_t)(uintptr_t)function < LJP_SIZE_##function)               \
    return LJP_VMSTATE_##state;
  LJP_HOST_STATES(LJP_X)
#undef LJP_X
  return LJP_VMSTATE_UNKNOWN;
}
