/*
** Names of functions that outlive the prototype around them: one copy of each
** name in the process. A prototype holds the number of its name in four bytes.
** Under the lock of prototypes (prototypes.c), on any thread.
*/
#ifndef LJP_PROTO_NAMES_H
#define LJP_PROTO_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* Numbers are below this one; 0 is no name. */
#define LJP_PROTO_NAMES_END 0x80000000u

/* Adds a user to a name, which is cut to LJP_NAME_BYTES and at its first zero
** byte. 0: no memory. */
uint32_t ljp_proto_name_get(const char *name, size_t length);
/* Removes a user. 0 does nothing. */
void ljp_proto_name_put(uint32_t number);
/* Valid as long as the name has this user; "" for 0. */
const char *ljp_proto_name(uint32_t number);

#endif
