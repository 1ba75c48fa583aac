/*
** Walks over samples, which the reader has found to be well formed. Any thread.
*/
#include "parsers/tarantool/number.h"
#include "parsers/tarantool/reader.h"

bool ljp_tarantool_guest(struct ljp_tarantool_walk *walk,
                         struct ljp_tarantool_frame *frame)
{
  unsigned kind = *walk->at++;
  if (kind & LJP_TARANTOOL_END)
    return false;
  *frame = (struct ljp_tarantool_frame){.kind = (uint8_t)kind};
  ljp_number_get(&walk->at, &frame->number);
  if (kind == LJP_LJP_FRAME_LUA)
    ljp_number_get(&walk->at, &frame->line);
  return true;
}

bool ljp_tarantool_host(struct ljp_tarantool_walk *walk, uint64_t *address)
{
  return ljp_number_get(&walk->at, address) && *address;
}

struct ljp_tarantool_trace
ljp_tarantool_trace(const struct ljp_tarantool_sample *sample)
{
  struct ljp_tarantool_trace t = {0};
  const uint8_t *p = sample->bytes + 1;
  ljp_number_get(&p, &t.number);
  ljp_number_get(&p, &t.proto);
  ljp_number_get(&p, &t.line);
  return t;
}
