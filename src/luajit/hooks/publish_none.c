/*
** Takes the place of publish.c in a build without profilers: all entries lead to the
** VM's assembly.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_vm.h"

__typeof__(lj_vm_call) *ljp_vm_call = lj_vm_call;
__typeof__(lj_vm_pcall) *ljp_vm_pcall = lj_vm_pcall;
__typeof__(lj_vm_cpcall) *ljp_vm_cpcall = lj_vm_cpcall;
__typeof__(lj_vm_resume) *ljp_vm_resume = lj_vm_resume;
