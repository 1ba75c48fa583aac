/*
** Renumber: moves the ids of one session after those of another, so that one
** stream can hold both (RFC 1, section 11). One thread.
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
  LJP_ID_SNAPSHOT,
  LJP_ID_LABELS,
  LJP_ID_COUNT
};

struct ljp_renumber {
  uint64_t base[LJP_ID_COUNT]; /* Added to the ids of this session. */
  uint64_t most[LJP_ID_COUNT]; /* Highest id used so far. */
  uint64_t session;            /* Number of the session: 0, 1 ... */
  uint64_t time;               /* Added to absolute times. */
};

/* Begins the next session. */
void ljp_renumber_session(struct ljp_renumber *map, uint64_t time);

/* Copies an item and moves its ids. Strings and pairs are not copied. */
void ljp_renumber_item(struct ljp_renumber *map, const struct ljp_item *from,
                       struct ljp_item *to);

/* Moves a single id. 0 stays 0. */
uint64_t ljp_renumber_id(struct ljp_renumber *map, enum ljp_id kind,
                         uint64_t id);

#endif
