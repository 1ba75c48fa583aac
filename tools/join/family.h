/*
** Family: the processes that descend from a process, by /proc. A process whose
** parent ended before it was seen is not found.
*/
#ifndef LJP_TOOLS_FAMILY_H
#define LJP_TOOLS_FAMILY_H

#include "tools/join/process.h"

enum { LJP_FAMILY_MOST = 2048 };

struct ljp_relative {
  pid_t pid;
  uint64_t start;         /* tells it from a later process with this number */
  uint64_t device, inode; /* the program that it runs; 0: it cannot be seen */
  unsigned looks;         /* at this program */
  bool there;             /* at the last look */
  bool listed; /* ... among the children: also one that has ended, until its
               ** parent waits for it */
  /* The caller's; 0 at first. */
  int state;
  pid_t helper, number;
  unsigned images, failures;
  uint64_t tried_device, tried_inode;
};

struct ljp_family {
  pid_t root; /* not in the list */
  uint64_t root_start;
  bool root_there; /* at the last look */
  bool root_over;  /* the caller's: it gets no more children */
  struct ljp_relative list[LJP_FAMILY_MOST];
  size_t count;
  bool full; /* there were more */
};

/* Does the kernel tell the children of a process? */
bool ljp_family_can(void);

void ljp_family_init(struct ljp_family *f, pid_t root);

/* Looks who is there now. Those that have gone stay in the list until the caller
** forgets them. */
void ljp_family_look(struct ljp_family *f);

/* The last one of the list takes its place. */
void ljp_family_forget(struct ljp_family *f, size_t which);

#endif
