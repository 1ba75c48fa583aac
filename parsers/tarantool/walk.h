/*
** Walks over samples, which the reader has found to be well formed, leaf first.
** Any thread.
*/
#ifndef LJP_PARSERS_TARANTOOL_WALK_H
#define LJP_PARSERS_TARANTOOL_WALK_H

#include "parsers/tarantool/number.h"
#include "parsers/tarantool/reader.h"

struct ljp_tarantool_walk {
  const uint8_t *at;
};

struct ljp_tarantool_frame {
  uint8_t kind;    /* enum ljp_ljp_frame */
  uint64_t number; /* LUA, C: address; BUILTIN: number. */
  uint64_t line;   /* LUA: of the definition. */
};

/* Of a sample whose state is TRACE. */
struct ljp_tarantool_trace {
  uint64_t number, proto, line;
};

/* Whether samples of a state have guest frames. */
static inline bool ljp_tarantool_has_guest(unsigned state)
{
  return state == LJP_LJP_LFUNC || state == LJP_LJP_FFUNC ||
         state == LJP_LJP_CFUNC;
}

static inline struct ljp_tarantool_walk
ljp_tarantool_walk(const struct ljp_tarantool_sample *sample)
{
  return (struct ljp_tarantool_walk){sample->bytes + 1};
}

/* Guest frames come first, then host addresses; false: there are no more. Read
** all guest frames of a state that has them before the addresses. Not for
** TRACE. */
static inline bool ljp_tarantool_guest(struct ljp_tarantool_walk *walk,
                                       struct ljp_tarantool_frame *frame)
{
  unsigned kind = *walk->at++;
  if (kind & LJP_TARANTOOL_END)
    return false;
  *frame = (struct ljp_tarantool_frame){.kind = (uint8_t)kind};
  ljp_number_address(&walk->at, &frame->number);
  if (kind == LJP_LJP_FRAME_LUA)
    ljp_number_get(&walk->at, &frame->line);
  return true;
}

static inline bool ljp_tarantool_host(struct ljp_tarantool_walk *walk,
                                      uint64_t *address)
{
  return ljp_number_address(&walk->at, address) && *address;
}

static inline struct ljp_tarantool_trace
ljp_tarantool_trace(const struct ljp_tarantool_sample *sample)
{
  struct ljp_tarantool_trace t = {0};
  const uint8_t *p = sample->bytes + 1;
  ljp_number_get(&p, &t.number);
  ljp_number_get(&p, &t.proto);
  ljp_number_get(&p, &t.line);
  return t;
}

#endif
