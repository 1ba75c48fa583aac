/*
** What happens to sessions at fork(): see fork.c.
*/
#ifndef LJP_FORK_H
#define LJP_FORK_H

/* The number of threads in this process that are ours: writers and helpers. */
unsigned ljp_fork_own_threads(void);

#endif
