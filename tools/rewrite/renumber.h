/*
** Renumber: moves the ids of one session behind those of another, so that both
** can stand in one stream (RFC 1, section 11). One thread.
*/
#ifndef LJP_TOOLS_RENUMBER_H
#define LJP_TOOLS_RENUMBER_H

#include "parsers/stream/record.h"

/* Kinds of ids. */
enum ljp_id {
  LJP_ID_MODULE,
  LJP_ID_THREAD,
  LJP_ID_VM,
  LJP_ID_PRODUCER,
  LJP_ID_PROTO,
  LJP_ID_TRACE,
  LJP_ID_NODE,
  LJP_ID_COUNT
};

struct ljp_renumber {
  uint64_t base[LJP_ID_COUNT]; /* Added to the ids of this session. */
  uint64_t most[LJP_ID_COUNT]; /* Highest id given out yet. */
  uint64_t session;            /* 0, 1 ... */
  uint64_t time;               /* Added to absolute times. */
};

/* The next session begins. */
void ljp_renumber_session(struct ljp_renumber *map, uint64_t time);

/* A copy of an event with its ids moved; strings and pairs stay the same. */
void ljp_renumber_event(struct ljp_renumber *map, const struct ljp_item *from,
                        struct ljp_item *to);

/* An id alone; 0 stays 0. */
uint64_t ljp_renumber_id(struct ljp_renumber *map, enum ljp_id kind,
                         uint64_t id);

#endif
