/*
** A guard over the walk of a heap that was copied at any moment: what is half made
** cannot be read, or leads in circles. Each part of the walk is tried before it is
** made, with an output that only counts. As nothing changes in a copy of the
** process, what succeeded once succeeds again.
**
** In a copy of the process only: it has one thread, and the handlers of SIGSEGV
** and SIGBUS are the guard's.
*/
#ifndef LJP_HEAP_GUARD_H
#define LJP_HEAP_GUARD_H

#include "src/luajit/heap/refs.h"

struct ljp_heap_guard {
  uint64_t unreadable; /* tries that failed */
  uint64_t objects;    /* that may still be met */
  uint64_t refs;       /* that one object may have */
};

/* What each object has: the next one, and its type. (GChead has more than the
** smallest objects.) */
#define LJP_HEAP_HEAD_BYTES (offsetof(GChead, gct) + 1)

void ljp_heap_guard_begin(struct ljp_heap_guard *guard, uint64_t heap_bytes);

/* Can these bytes of a new object be read? False also if there were more objects
** than the heap can have. */
bool ljp_heap_guard_read(struct ljp_heap_walk *w, const void *object,
                         size_t bytes);

/* Tries a part of a walk. */
bool ljp_heap_guard_try(struct ljp_heap_walk *w,
                        bool (*part)(struct ljp_heap_walk *w, void *arg),
                        void *arg);

#endif
