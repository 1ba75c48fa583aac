/*
** Table: the descriptors of our threads in a program that can be joined. They
** are in a table of their own, so the program never meets one of ours: neither
** a loop over all descriptors nor the lowest free number does. See helper.c.
*/
#ifndef LJP_JOIN_TABLE_H
#define LJP_JOIN_TABLE_H

#include <stdbool.h>

/* From here on the calling thread, and those that it makes, have a table of
** their own, with this descriptor only; -1: with none. False: the kernel is too
** old (before Linux 5.9), or a sandbox forbids it, and nothing has changed. */
bool ljp_table_own(int keep);

/* Gives the descriptor another number: in a table of our own, one behind the
** standard streams; in the program's, one so high that programs do not get it,
** and the old number stays open. Returns the new one, or -1. */
int ljp_table_move(int fd, bool own);

/* In a table of our own: what is written to standard error must not land in a
** file of ours. */
void ljp_table_fill_standard(void);

#endif
