/*
** Moment: whether a stopped thread may call pthread_create(), which takes memory
** and locks of libc (RFC 8, "A safe moment"): it must not be inside the
** allocator, the loader or the making of a thread.
*/
#ifndef LJP_TOOLS_MOMENT_H
#define LJP_TOOLS_MOMENT_H

#include <sys/user.h>

#include "tools/join/find.h"

enum { LJP_MOMENT_RANGES = 512, LJP_MOMENT_WORDS = 32768 };

struct ljp_range {
  uint64_t low, high;
};

/* The code of a process in which a thread must not be when it is used. */
struct ljp_code {
  struct ljp_range forbidden[LJP_MOMENT_RANGES]; /* not even on its stack */
  struct ljp_range libc[LJP_MOMENT_RANGES];      /* not if it runs */
  unsigned forbidden_count, libc_count;
  uint64_t restorer; /* where libc's signal handlers return to; 0: none */
  bool bare; /* the functions of libc are not known: only waits are safe */
};

/* Looks at the objects of the process. */
void ljp_code_read(struct ljp_code *code, pid_t pid,
                   const struct ljp_maps *maps);

/* Is this a call in which threads wait, and no allocator? */
bool ljp_moment_waits(long call);
/* Does the call wait for a time that counts from its beginning? Made anew, it
** waits longer. */
bool ljp_moment_is_timed(long call);
/* Has the stop interrupted a wait? Then the call must be made anew. */
bool ljp_moment_interrupted(const struct user_regs_struct *r);

/* Why the moment is not safe, as far as the registers tell; NULL: they do not
** forbid it. The thread is stopped. */
const char *ljp_moment_glance(const struct ljp_code *code,
                              const struct ljp_maps *maps,
                              const struct user_regs_struct *r);
/* The rest: why it is not safe; NULL: it is. */
const char *ljp_moment_unsafe(const struct ljp_code *code, pid_t pid,
                              const struct ljp_maps *maps,
                              const struct user_regs_struct *r,
                              uint64_t rseq_at);

#endif
