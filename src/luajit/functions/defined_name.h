/*
** Names of functions, from the bytecode that defines them.
*/
#ifndef LJP_DEFINED_NAME_H
#define LJP_DEFINED_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lj_obj.h"

/* Calls `name` for each function that pt defines under a name (a local, a
** field, a method, a global or an upvalue) and whose name is wanted. At most
** `most` names are wanted. The text is not terminated. */
void ljp_proto_name_children(const GCproto *pt, uint32_t most,
                             bool (*wanted)(void *arg, const GCproto *child),
                             void (*name)(void *arg, const GCproto *child,
                                          const char *text, size_t length),
                             void *arg);

#endif
