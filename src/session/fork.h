/*
** What happens to sessions at fork(): see fork.c.
*/
#ifndef LJP_FORK_H
#define LJP_FORK_H

/* Writer threads of this process, now. */
unsigned ljp_fork_writers(void);

#endif
