/*
** Examine: why a process cannot be joined, as far as that can be said before
** anything is stopped.
*/
#ifndef LJP_TOOLS_EXAMINE_H
#define LJP_TOOLS_EXAMINE_H

#include "tools/join/find.h"

/* -1: it may be possible; found says where our library is. Else the exit code
** after reporting why not. maps is the caller's to free in any case. */
int ljp_examine(const char *command, pid_t pid, struct ljp_proc_status *status,
                struct ljp_maps *maps, struct ljp_found *found);

/* The value of kernel.yama.ptrace_scope; -1: this kernel has none. */
int ljp_examine_scope(void);
/* Why such a value forbids that a program is joined by its number, and what
** helps; NULL: it does not. */
const char *ljp_examine_scope_text(int scope, bool root);

#endif
