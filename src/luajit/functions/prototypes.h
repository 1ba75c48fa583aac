/*
** Prototypes, for the other folders of src/luajit: whether a reference still
** stands for the same prototype, and what the hooks of VMs call.
*/
#ifndef LJP_PROTOTYPES_H
#define LJP_PROTOTYPES_H

#include <stdbool.h>
#include <stdint.h>

struct ljp_vm;

/* The largest id that a prototype has now. */
uint64_t ljp_protos_newest(void);
/* Does a reference that was valid when `newest` was the largest id still stand
** for the same prototype? */
bool ljp_protos_stand(uint32_t ref, uint64_t newest);

/* Call when a VM's collector is about to sweep: it frees first strings, then
** the prototypes that refer to them. */
void ljp_protos_sweep(struct ljp_vm *vm);
/* Call when the sweep has ended. */
void ljp_protos_swept(struct ljp_vm *vm);
/* Call when a VM is about to free everything; vm->g is 0 from then on. False:
** the VM's entry must stay until its last prototype has been freed, and is then
** removed by the hook. */
bool ljp_protos_drop(struct ljp_vm *vm);

#endif
