/*
** Sandbox: a joined program of which some threads may make few system calls
** (seccomp). What a session does on a program's own threads could end it.
*/
#ifndef LJP_TOOLS_SANDBOX_H
#define LJP_TOOLS_SANDBOX_H

#include "tools/join/talk.h"

/* Before a request by which the program's own threads run code of ours. -1: none
** of them is in a sandbox, or the program listens, so its user has decided; else
** the exit code after reporting which one is. */
int ljp_sandbox_refuse(const struct ljp_talk *talk);

#endif
