/*
** The VMs of a session: which id in the stream stands for the VM with a given
** process-wide number.
**
** The table belongs to the CPU profiler's session, which the memory profiler
** may share. An entry passes through these states: free (number 0), claimed (a
** number, id 0), named (an id), closing (lua_close() has ended), free again. A
** signal handler may claim an entry. Ordinary code takes every other step,
** under the lock of the CPU profiler.
**
** While the table is full, ljp_vms_ensure() gives ids beyond it. A VM keeps such
** an id when it gets an entry later; until then its CPU samples have no VM.
*/
#ifndef LJP_VMS_H
#define LJP_VMS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/sigsafe.h"
#include "src/session/session.h"

enum { LJP_VMS = 256 /* entries: VMs at a time that handlers can name */ };

struct ljp_vms_entry {
  _Atomic uint32_t number, id;
  _Atomic uint32_t closing; /* rounds since the VM ended, or 0 */
};
extern struct ljp_vms_entry ljp_vms[LJP_VMS];

/* The id of a VM, or 0: it has none yet. A VM without an entry gets one, and
** *claimed is set. */
LJP_SIGSAFE uint32_t ljp_vms_claim(uint32_t number, bool *claimed);

/* The id of a VM, or 0. From any thread. */
uint32_t ljp_vms_id(uint32_t number);

/* Frees all entries. No handler may be active. */
void ljp_vms_reset(void);
/* Claims an entry for a VM. ctx is not used: the signature is that of
** ljp_guest_each_vm(). */
void ljp_vms_add(void *ctx, uint32_t number);
/* Nothing runs in this VM any more. */
void ljp_vms_close(uint32_t number);
/* Gives ids to the claimed entries. */
void ljp_vms_define(struct ljp_session *session);
/* The id of a VM, which gets one if it has none, even if the table is full. 0: no
** memory. */
uint32_t ljp_vms_ensure(uint32_t number, struct ljp_session *session);
/* In each round: the same as ljp_vms_define(), and frees the entries of closed
** VMs. */
void ljp_vms_update(struct ljp_session *session);
/* In the child of a fork: frees the entries of VMs that the parent has
** closed. */
void ljp_vms_forked(struct ljp_session *session);

#endif
