/*
** Snapshots: the heap snapshots that a recording of a joined program gets: one of
** each VM at intervals and at its end. The program writes each into a file
** without a name that is made here, and from there into the recording.
*/
#ifndef LJP_TOOLS_JOIN_SNAPSHOTS_H
#define LJP_TOOLS_JOIN_SNAPSHOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/join/talk.h"

enum { LJP_SNAPSHOTS_VMS = 64 /* at a time */ };

struct ljp_join_snapshots {
  const char *command;
  uint64_t every_ms; /* 0: none but the last ones */
  bool last;         /* at the end, too */
  /* A round: one of each VM, one after the other. */
  enum { LJP_SNAPSHOTS_IDLE, LJP_SNAPSHOTS_ASKS, LJP_SNAPSHOTS_TAKES } step;
  uint64_t due_ms, since_ms; /* of the next round; of the last request */
  uint32_t serial;           /* of that request */
  uint32_t vms[LJP_SNAPSHOTS_VMS];
  unsigned count, next;
};

void ljp_join_snapshots_init(struct ljp_join_snapshots *s, const char *command,
                             uint64_t every_ms, bool last);
/* The recording has begun. */
void ljp_join_snapshots_start(struct ljp_join_snapshots *s);
/* For how long nothing has to be done; -1: until a message comes. */
int ljp_join_snapshots_wait_ms(const struct ljp_join_snapshots *s);
/* Begins the round that is due, and gives up a request that nobody answers. */
void ljp_join_snapshots_turn(struct ljp_join_snapshots *s,
                             struct ljp_talk *talk);
/* Begins the last round. No other one follows. */
void ljp_join_snapshots_last(struct ljp_join_snapshots *s,
                             struct ljp_talk *talk);
/* A message has come, perhaps for us. */
void ljp_join_snapshots_heard(struct ljp_join_snapshots *s,
                              struct ljp_talk *talk);
static inline bool ljp_join_snapshots_busy(const struct ljp_join_snapshots *s)
{
  return s->step != LJP_SNAPSHOTS_IDLE;
}

#endif
