/*
** Stacks of the stream to nodes of the profile. A stack is resolved once: its
** id leads through an array to an entry that holds its node and the rows last
** used there.
**
** Invariants: an entry is found by the low bits of the id, as in
** stream/model.c. Ids never change their meaning, so an entry that has its id
** is valid, unless it was made while a definition was missing: then it is
** valid only until the epoch ends.
*/
#ifndef LJP_PARSERS_PROFILE_STACK_H
#define LJP_PARSERS_PROFILE_STACK_H

#include "parsers/profile/profile.h"
#include "src/base/sigsafe.h"

#define LJP_STACK_ROWS 4u
struct ljp_stack_entry {
  uint64_t id;
  uint32_t leaf, caller; /* Node + 1; 0: not made yet. */
  /* Rows last used with leaf, by the low bits of the context. Row + 1; 0:
  ** none. */
  uint32_t rows[LJP_STACK_ROWS];
  uint32_t labels; /* Of events at the stack, + 1; 0: not looked for yet. */
  uint32_t epoch;  /* Valid only in this epoch of the pass; 0: always. */
};

#define LJP_STACK_PAGE 1024u
#define LJP_STACK_PAGES (LJP_EPOCH_MAX_NODES / LJP_STACK_PAGE)
struct ljp_stack_map {
  struct ljp_stack_entry *pages[LJP_STACK_PAGES];
};

void ljp_stack_map_clear(struct ljp_stack_map *map);

/* The entry at the place of a stack, which may be another stack's; NULL: no
** page there. */
static inline struct ljp_stack_entry *
ljp_stack_map_at(const struct ljp_stack_map *map, uint64_t stack)
{
  uint64_t low = stack & (LJP_EPOCH_MAX_NODES - 1);
  struct ljp_stack_entry *page = map->pages[low / LJP_STACK_PAGE];
  return page ? page + low % LJP_STACK_PAGE : NULL;
}

static inline bool ljp_stack_entry_valid(const struct ljp_stack_entry *entry,
                                         uint64_t stack, uint32_t epoch)
{
  return entry->id == stack && (!entry->epoch || entry->epoch == epoch);
}

/* The node of a stack. *entry is valid until the next call; NULL: the stack
** has none. LJP_ERR_MEM. */
enum ljp_status ljp_profile_find_stack(struct ljp_profile *p, uint64_t stack,
                                       struct ljp_stack_entry **entry,
                                       uint32_t *node);

/* The labels of events at a stack, in p->labels[]. LJP_ERR_MEM. */
enum ljp_status ljp_profile_stack_labels(struct ljp_profile *p, uint64_t stack,
                                         uint32_t *labels);

#endif
