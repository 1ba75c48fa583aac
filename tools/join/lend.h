/*
** Lend: gives a joined program a proc file system, if it may have none of its own.
*/
#ifndef LJP_TOOLS_LEND_H
#define LJP_TOOLS_LEND_H

#include "tools/join/talk.h"

/* Before a request that needs the list of the program's threads. Does nothing if
** the program has the same root and namespaces as this process, or if the system
** does not permit it. */
void ljp_lend_proc(struct ljp_talk *talk);

#endif
