/*
** Table: the descriptors of our threads in a program that can be joined. They
** are in a table of their own where the kernel permits it (base/own_table.h). See
** helper.c.
*/
#ifndef LJP_JOIN_TABLE_H
#define LJP_JOIN_TABLE_H

#include <stdbool.h>

/* Gives the descriptor another number: in a table of our own, one behind the
** standard streams; in the program's, one so high that programs do not get it,
** and the old number stays open. Returns the new one, or -1. */
int ljp_table_move(int fd, bool own);

#endif
