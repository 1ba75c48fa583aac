/*
** Entry: how a client gets into the process; see entry.c. Nothing calls it but
** the client.
*/
#ifndef LJP_JOIN_ENTRY_H
#define LJP_JOIN_ENTRY_H

#include "src/base/join.h"
#include "src/base/preload.h"

/* For the assembler, which knows no enum. */
#define LJP_JOIN_NOTE_VERSION 2
#define LJP_JOIN_STACK_TOP 65536
_Static_assert(LJP_JOIN_NOTE_VERSION == LJP_JOIN_VERSION &&
                   LJP_JOIN_STACK_TOP == LJP_JOIN_STACK_BYTES,
               "the note tells the truth");
#define LJP_JOIN_TEXT_OF(x) #x
#define LJP_JOIN_TEXT(x) LJP_JOIN_TEXT_OF(x)

/* What client and library share. */
extern
    __attribute__((visibility("hidden"))) struct ljp_join_state ljp_join_state;

/* For the entry only. */
__attribute__((visibility("hidden"))) void ljp_join_enter(void);

#endif
