/*
** Stacks of a program in which no helper can start.
*/
#ifndef LJP_TOOLS_STACKS_OUTSIDE_H
#define LJP_TOOLS_STACKS_OUTSIDE_H

#include <stdbool.h>
#include <sys/types.h>

/* Prints the machine code's stack of each thread. False: nothing could be read,
** and nothing was printed. */
bool ljp_stacks_outside(pid_t pid);

#endif
