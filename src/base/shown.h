/*
** Shown: what `ljprof list` reads of the library in a program's memory, without
** stopping anything. The ELF note leads to it (join.h).
**
** Plain words, each changed in one piece. A reader may see one before and the
** next after a change.
*/
#ifndef LJP_SHOWN_H
#define LJP_SHOWN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* `sessions`, and four times that for those of the client. */
enum { LJP_SHOWN_CPU = 1, LJP_SHOWN_MEMORY = 2, LJP_SHOWN_SHIFT = 2 };

struct ljp_shown {
  _Atomic uint32_t vms, sessions;
  _Atomic int32_t client; /* who has begun the latest session of a client */
  char version[20];       /* of the library, ended by a zero */
};
_Static_assert(sizeof(struct ljp_shown) == 32, "the note tells only where");

extern __attribute__((visibility("hidden"))) struct ljp_shown ljp_shown;

static inline void ljp_show_vm(int change)
{
  atomic_fetch_add_explicit(&ljp_shown.vms, (uint32_t)change,
                            memory_order_relaxed);
}

static inline void ljp_show_session(uint32_t which, bool runs, int32_t client)
{
  if (runs && client)
    atomic_store_explicit(&ljp_shown.client, client, memory_order_relaxed);
  if (runs)
    atomic_fetch_or_explicit(&ljp_shown.sessions,
                             which | (client ? which << LJP_SHOWN_SHIFT : 0),
                             memory_order_relaxed);
  else
    atomic_fetch_and_explicit(&ljp_shown.sessions,
                              ~(which | which << LJP_SHOWN_SHIFT),
                              memory_order_relaxed);
}

#endif
