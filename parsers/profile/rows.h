/*
** Rows: where an event is counted. This is the hot path of the pass: with the
** entry of the stack at hand, a row is found without a hash.
*/
#ifndef LJP_PARSERS_PROFILE_ROWS_H
#define LJP_PARSERS_PROFILE_ROWS_H

#include "parsers/profile/intern.h"
#include "parsers/profile/pass.h"
#include "src/base/assert.h"

/* The row of a stack in a context. LJP_ERR_MEM. */
static inline enum ljp_status ljp_profile_find_row(struct ljp_profile *p,
                                                   uint64_t stack,
                                                   uint32_t context,
                                                   uint32_t *row)
{
  struct ljp_profile_pass *pass = p->pass;
  struct ljp_stack_entry *entry = ljp_stack_map_at(&pass->stacks, stack);
  enum ljp_status status;
  uint32_t node;
  if (LJP_LIKELY(entry)) {
    uint32_t at = entry->rows[context % LJP_STACK_ROWS];
    if (LJP_LIKELY(at && ljp_stack_entry_valid(entry, stack, pass->epoch) &&
                   p->rows[at - 1].context == context)) {
      *row = at - 1;
      return LJP_OK;
    }
  }
  if ((status = ljp_profile_find_stack(p, stack, &entry, &node)) ||
      (status = ljp_profile_intern_row(p, node, context, row)))
    return status;
  ljp_assert(!entry || !entry->leaf || entry->leaf == node + 1);
  if (entry && entry->leaf)
    entry->rows[context % LJP_STACK_ROWS] = *row + 1;
  return LJP_OK;
}

/* Counts an event at a row in the totals if it has no usable stack. */
static inline void ljp_profile_count_missing_stack(struct ljp_profile *p,
                                                   uint32_t row)
{
  uint32_t node = p->rows[row].node;
  if (LJP_UNLIKELY(node <= LJP_NODE_TOO_MANY)) {
    p->totals.no_stack += node == LJP_NODE_NO_STACK;
    p->totals.lost_stacks += node == LJP_NODE_LOST;
    p->totals.too_many += node == LJP_NODE_TOO_MANY;
  }
}

/* Whether the options select this time of the stream. */
static inline bool ljp_profile_time_wanted(const struct ljp_profile *p,
                                           uint64_t time_ns)
{
  if (LJP_LIKELY(!p->pass->filters_time))
    return true;
  uint64_t at = ljp_profile_since(p, time_ns);
  return at >= p->options.from_ns &&
         (!p->options.to_ns || at < p->options.to_ns);
}

#endif
