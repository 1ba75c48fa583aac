/*
** What happens to sessions at fork(): see fork.c.
*/
#ifndef LJP_FORK_H
#define LJP_FORK_H

/* The number of writer threads in this process now. */
unsigned ljp_fork_writers(void);

#endif
