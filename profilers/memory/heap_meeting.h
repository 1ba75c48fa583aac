/*
** Meeting: a VM that runs, and a thread of ours that wants a copy of its heap. The
** VM's own thread comes to a moment at which its heap is whole, and stands still
** there until the copy has been made (RFC 8, section 5).
**
** One at a time in a process: ljp_heap_snapshot_claim(). All of this is for the
** thread that asks.
*/
#ifndef LJP_MEMORY_HEAP_MEETING_H
#define LJP_MEMORY_HEAP_MEETING_H

#include <stdbool.h>
#include <stdint.h>

struct lua_State;
struct ljp_heap_target;

struct ljp_heap_meeting {
  uint32_t vm;
  bool gc; /* let one such moment pass: what was garbage before is freed then */
  /* The place in a session, which the VM's thread fills in; NULL: none. */
  struct ljp_heap_target *target;
  /* The rest is kept here. */
  struct lua_State *L; /* that stands still, once it has come */
  bool came, gone;     /* gone: there is no such VM */
  uint64_t stood_ns;   /* since when it stands still */
  uint64_t began_ns, moved_ns, bytes;
  uint32_t turn; /* 0: nobody is asked */
  bool safe;     /* memory that has gone can be read */
};

enum ljp_heap_meeting_state {
  LJP_MEETING_WAITS,
  LJP_MEETING_HERE,
  LJP_MEETING_NEVER /* it is not asked any more; see `gone` */
};

/* Asks the VM to come. */
void ljp_heap_meeting_begin(struct ljp_heap_meeting *m);
/* Waits for it, for so long at most. It is given up if the VM allocates nothing
** for two seconds, or after half a minute; a snapshot that has no place in a
** session can be of any moment, so it waits for less. */
enum ljp_heap_meeting_state ljp_heap_meeting_wait(struct ljp_heap_meeting *m,
                                                  uint64_t ns);
/* The VM goes on, or is not asked any more. False: it went on before, so that the
** copy may be of any moment. */
bool ljp_heap_meeting_end(struct ljp_heap_meeting *m);

#endif
