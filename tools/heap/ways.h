/*
** Ways: paths of many objects at once. Objects whose shortest paths differ only in
** array indexes, in the keys of a large table or in digits of names have the same
** way: "_G.cache[*].name". A way that comes back to where it was (a linked list, a
** tree) is told once: "_G.list.next ...". One thread.
*/
#ifndef LJP_TOOLS_HEAP_WAYS_H
#define LJP_TOOLS_HEAP_WAYS_H

#include "parsers/base/index.h"
#include "tools/heap/kinds.h"

struct ljp_heap_way {
  uint64_t key;     /* Of its last step. */
  uint32_t parent;  /* The way without its last step; 0: none. */
  uint32_t example; /* A node at its end. */
  uint32_t steps;
  uint32_t front; /* Its first steps, as many as views show. */
  bool merged;    /* The last step stands for several. */
  bool again;     /* Steps like the last one follow. */
};

struct ljp_heap_ways {
  const struct ljp_graph *g;
  const struct ljp_heap_kinds *kinds;
  struct ljp_heap_way *list; /* 0: of node 0. */
  uint32_t count, room;
  struct ljp_index index; /* Over list. */
  uint32_t *of;           /* By node; UINT32_MAX: not asked for yet. */
  uint32_t *stack, stack_room;
  /* A bit for each node: a table with many string keys; whether that is known. */
  uint8_t *map, *map_known;
};

/* kinds: with of[]; borrowed. */
enum ljp_status ljp_heap_ways_init(struct ljp_heap_ways *ways,
                                   const struct ljp_graph *g,
                                   const struct ljp_heap_kinds *kinds);
void ljp_heap_ways_fini(struct ljp_heap_ways *ways);

/* The way of a node that something holds; UINT32_MAX: no memory. */
uint32_t ljp_heap_way(struct ljp_heap_ways *ways, uint32_t node);

void ljp_heap_way_text(const struct ljp_heap_ways *ways, uint32_t way,
                       struct ljp_heap_text *t);

/* Only its last step: "[*]", ".name". */
void ljp_heap_way_step_text(const struct ljp_heap_ways *ways, uint32_t way,
                            struct ljp_heap_text *t);

/* The way by which most objects of a group are held, found by a vote in one pass:
** if more than half of them have the same way, that one wins. */
struct ljp_heap_vote {
  uint32_t way, lead; /* Of that way over the others. */
  bool mixed;         /* They have several ways. */
};

static inline void ljp_heap_vote_add(struct ljp_heap_vote *vote, uint32_t way)
{
  if (!vote->lead)
    vote->way = way;
  vote->mixed |= vote->way != way;
  if (vote->way == way)
    vote->lead++;
  else
    vote->lead--;
}

/* Adds the path of `alone`, the only object of a group; if it is 0, the way that
** has won. also_others: says so if there are other ways. */
void ljp_heap_vote_text(const struct ljp_heap_ways *ways,
                        const struct ljp_heap_vote *vote, uint32_t alone,
                        bool also_others, struct ljp_heap_text *t);

/* "user:#" of "user:17": runs of digits, long hexadecimal numbers and tokens
** become #. Writes at most `room` bytes; returns their number. */
uint32_t ljp_heap_pattern(struct ljp_str s, char *out, uint32_t room);

#endif
