/*
** Own table: a table of descriptors for threads of ours, apart from the program's.
** The program never meets a descriptor in it: neither a loop over all descriptors
** nor the lowest free number does. And a program of one thread is still the only
** user of its own table, so the kernel need not count each use of a descriptor.
*/
#ifndef LJP_OWN_TABLE_H
#define LJP_OWN_TABLE_H

#include <stdbool.h>

/* From here on the calling thread, and those that it makes, have a table of
** their own, with this descriptor only; -1: with none. standard: it has the
** program's standard streams, too. False: the kernel is too old (before Linux
** 5.9), or a sandbox forbids it, and nothing has changed. */
bool ljp_own_table_enter(int keep, bool standard);

/* In a table of our own: closes its copies of the program's standard streams. What is
** written to standard error afterwards never lands in a file of ours. */
void ljp_own_table_leave_standard(void);

/* Is there a sandbox that might end the program for a system call that it does not
** know? Yes, if that cannot be told. */
bool ljp_own_table_is_risky(void);

#endif
