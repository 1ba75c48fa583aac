/*
** The growth of heaps: as the VMs report it (GC records), and as the sum of
** their memory events. In a session that records every event, both are equal to
** the byte at each GC record (RFC 1, section 7).
**
** Events after a VM's last GC record have no figure to be compared with, so
** they are left out. Each growth is used by one thread.
*/
#ifndef LJP_PARSERS_GROWTH_H
#define LJP_PARSERS_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"

struct ljp_item;

/* VMs at a time; those beyond are left out. */
enum { LJP_GROWTH_VMS = 4096 };

struct ljp_growth_vm {
  uint64_t id;
  bool has_heap;                  /* The next three are known. */
  uint64_t heap_first, heap_last; /* Bytes, as LuaJIT counted. */
  uint64_t then;                  /* Of `events`, at the last of these. */
  uint64_t events;                /* Allocated - freed, so far. */
};

struct ljp_growth {
  struct ljp_growth_vm *vms; /* Not closed so far. */
  uint32_t count, room, last;
  uint8_t *seen; /* By id: enum growth_seen. */
  uint32_t seen_room;
  uint64_t defined, followed; /* VMs of the stream; those with figures. */
  uint64_t counted, events;   /* Growth of closed VMs, by either way. */
  uint64_t unequal;           /* VMs whose two figures differ. */
  uint64_t first_unequal;     /* The id of the first one. */
  bool sampled;               /* There is nothing to be compared. */
  bool incomplete;            /* Not all could be kept. */
};

struct ljp_growth_sums {
  uint64_t vms, followed;
  int64_t counted, events; /* Growth of the heaps, by LuaJIT and by events. */
  uint64_t unequal, first_unequal;
  bool comparable;
};

void ljp_growth_fini(struct ljp_growth *growth);

/* Takes any item; most have nothing to say. LJP_ERR_MEM. */
enum ljp_status ljp_growth_take(struct ljp_growth *growth,
                                const struct ljp_item *item);

/* Another session begins (in a merged file): its ids are others. */
void ljp_growth_next(struct ljp_growth *growth);

struct ljp_growth_sums ljp_growth_sums(const struct ljp_growth *growth);

#endif
