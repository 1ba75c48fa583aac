/*
** Strings, each kept once, by small numbers; 0 is the empty one. Memory of
** their bytes is bounded by the limit given. One thread a table.
*/
#ifndef LJP_PARSERS_STRINGS_H
#define LJP_PARSERS_STRINGS_H

#include "parsers/stream/item.h"
#include "parsers/profile/table.h"
#include "src/base/status.h"

struct ljp_strings {
  struct ljp_str *list;
  uint32_t count, room;
  struct ljp_index index;
  char **pieces;
  uint32_t piece_count, piece_room;
  size_t piece_left, bytes, limit;
  uint64_t seed; /* So that no input knows what collides. */
};

enum ljp_status ljp_strings_init(struct ljp_strings *strings, size_t limit);
void ljp_strings_fini(struct ljp_strings *strings);

/* LJP_ERR_LIMIT: no room for a new one; LJP_ERR_MEM. */
enum ljp_status ljp_strings_add(struct ljp_strings *strings, struct ljp_str s,
                                uint32_t *id);

#endif
