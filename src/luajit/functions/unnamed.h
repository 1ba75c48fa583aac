/*
** Prototypes whose functions have no names yet. A function's name is in the
** prototype around it, which may be gone when a session starts. So surrounding
** prototypes wait in a list of their VM. The collector's next cycle empties the
** list: before the cycle frees anything, their functions get their names
** (proto_names.h).
**
** The prototype's field ljp_name, in former padding (patch 0004), holds the
** number of the name, or, in a prototype in that list, a link to the next one.
** The list is in the order of age, so a prototype has left it when the one
** around it, which was finished later, is processed.
**
** Everything is under the lock of prototypes.
*/
#ifndef LJP_UNNAMED_H
#define LJP_UNNAMED_H

#include <stdint.h>

#include "lj_obj.h"

#include "src/luajit/functions/proto_names.h"
#include "src/luajit/functions/slots.h"

/* In ljp_name: a link, with the reference of the next prototype. */
#define LJP_UNNAMED_LINK LJP_PROTO_NAMES_END

/* Adds a prototype that has functions. */
static inline void ljp_unnamed_add(struct ljp_vm *vm, GCproto *pt, uint32_t ref)
{
  pt->ljp_name = LJP_UNNAMED_LINK;
  if (vm->unnamed)
    vm->unnamed_last->ljp_name = LJP_UNNAMED_LINK | ref;
  else
    vm->unnamed = ref;
  vm->unnamed_last = pt;
}

/* Names the functions of a prototype that is in no list. */
void ljp_unnamed_name(global_State *g, const GCproto *pt);

/* Takes at most `most` prototypes off the VM's list, and names their
** functions. */
void ljp_unnamed_name_some(struct ljp_vm *vm, uint32_t most);

#endif
