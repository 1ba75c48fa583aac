/*
** Interned strings: each different string is stored once and gets a small
** number; number 0 is the empty string. The bytes stored never exceed the
** limit given. One thread a table.
*/
#ifndef LJP_PARSERS_STRINGS_H
#define LJP_PARSERS_STRINGS_H

#include <stddef.h>

#include "parsers/base/index.h"
#include "parsers/base/str.h"
#include "src/base/status.h"

struct ljp_strings {
  struct ljp_str *list; /* By number. */
  uint32_t count, room;
  struct ljp_index index; /* Over list. */
  char **pieces;          /* Memory of the bytes; pieces never move. */
  uint32_t piece_count, piece_room;
  size_t piece_left, bytes, limit;
  uint64_t seed; /* Random: input cannot be made to collide. */
};

enum ljp_status ljp_strings_init(struct ljp_strings *strings, size_t limit);
void ljp_strings_fini(struct ljp_strings *strings);

/* The number of a string, which is copied if it is new. LJP_ERR_LIMIT: there
** is no room for a new string. LJP_ERR_MEM. */
enum ljp_status ljp_strings_add(struct ljp_strings *strings, struct ljp_str s,
                                uint32_t *id);

#endif
