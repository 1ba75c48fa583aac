/*
** See segments.h.
*/
#include "profilers/memory/segments.h"

enum {
#ifdef LJP_DEBUG
  SETS = 4, /* a power of two */
  WAYS = 2,
  DEEPS = 2,
  LEVELS = 5,
  FRAMES = 12,
  WORDS = 48,
#else
  SETS = 256, /* a power of two */
  WAYS = 4,
  DEEPS = 16,
  LEVELS = 64, /* of a segment */
  FRAMES = 96, /* of a segment and of what is below it */
  WORDS = 128, /* on which the frames below may depend */
#endif
  SEGMENTS = SETS * WAYS,
  DEEP_LEVELS = 1024,
  DEEP_WORDS = 384,
  ABOVE = LJP_SITE_FRAMES + LJP_FRONT_FRAMES /* frames of an answer above its
                                             ** segment */
};

struct small {
  struct ljp_memo_read link[LEVELS + LJP_SPINE_SPARE];
  struct ljp_level level[LEVELS];
  uint64_t stack[FRAMES + ABOVE];
  struct ljp_memo_read word[WORDS];
};

struct deep {
  struct ljp_segment *owner;
  struct ljp_memo_read link[DEEP_LEVELS + LJP_SPINE_SPARE];
  struct ljp_level level[DEEP_LEVELS];
  uint64_t stack[LJP_STACK_MAX_FRAMES + ABOVE];
  struct ljp_memo_read word[DEEP_WORDS];
};

struct ljp_segments {
  uint32_t next_deep;
  struct ljp_spine_calls calls;
  struct ljp_segment segment[SEGMENTS];
  struct small small[SEGMENTS];
  struct deep deep[DEEPS];
};

bool ljp_segments_init(struct ljp_stacks *s)
{
  s->segments = ljp_stacks_pages(sizeof *s->segments);
  return s->segments != NULL;
}

void ljp_segments_fini(struct ljp_stacks *s)
{
  ljp_stacks_free_pages(s->segments, sizeof *s->segments);
  s->segments = NULL;
  s->last = NULL;
}

void ljp_segments_forget(struct ljp_stacks *s)
{
  for (int i = 0; i < SEGMENTS; i++)
    s->segments->segment[i].epoch = 0;
}

/* -- The table ------------------------------------------------------------- */

static struct ljp_segment *segment_set(struct ljp_stacks *s, uint64_t L,
                                       uint64_t cframe)
{
  uint64_t key = (L ^ cframe << 20) * UINT64_C(0x9e3779b97f4a7c15);
  return &s->segments->segment[(key >> 40 & (SETS - 1)) * WAYS];
}

/* A segment that was not used last has probably left the nearest cache. Fetches
** all that will be compared at once. */
static void segment_fetch(const struct ljp_segment *a)
{
  enum { AT_ONCE = 64 / sizeof(struct ljp_memo_read) };
  for (uint32_t i = 0; i < a->spine.count; i += AT_ONCE)
    __builtin_prefetch(a->spine.link + i);
  __builtin_prefetch(a->spine.level + a->spine.count - 1);
  for (uint32_t i = 0; i < a->words; i += AT_ONCE)
    __builtin_prefetch(a->word + i);
  __builtin_prefetch(a->spine.stack);
}

struct ljp_segment *ljp_segment_find(struct ljp_stacks *s, uint64_t L,
                                     uint64_t cframe)
{
  struct ljp_segment *a = s->last;
  if (a && a->L == L && a->cframe == cframe)
    return a;
  a = segment_set(s, L, cframe);
  for (int way = 0; way < WAYS; way++, a++)
    if (a->L == L && a->cframe == cframe) {
      segment_fetch(a);
      return a;
    }
  return NULL;
}

struct ljp_segment *ljp_segment_victim(struct ljp_stacks *s, uint64_t L,
                                       uint64_t cframe,
                                       const struct ljp_segment *in_use)
{
  struct ljp_segment *a = segment_set(s, L, cframe), *victim = NULL;
  uint64_t least = UINT64_MAX;
  for (int way = 0; way < WAYS; way++, a++) {
    uint64_t use = !a->epoch ? 0 : a->epoch != s->epoch ? 1 : 2;
    if (use == 2)
      use += a->hits - a->seen;
    a->seen = a->hits;
    if (a != in_use && use < least) {
      least = use;
      victim = a;
    }
  }
  return victim;
}

/* -- Arrays ---------------------------------------------------------------- */

struct arrays {
  struct ljp_memo_read *link;
  struct ljp_level *level;
  uint64_t *stack;
  struct ljp_memo_read *word;
  uint32_t levels, room, words;
};

static void segment_use_arrays(struct ljp_segment *a,
                               const struct arrays *arrays)
{
  a->spine.link = arrays->link;
  a->spine.level = arrays->level;
  a->spine.stack = arrays->stack;
  a->spine.levels = arrays->levels;
  a->spine.room = arrays->room;
  a->word = arrays->word;
  a->word_room = arrays->words;
}

void ljp_segment_clear(struct ljp_stacks *s, struct ljp_segment *a)
{
  if (!a->word) {
    struct small *small = &s->segments->small[a - s->segments->segment];
    a->spine.calls = &s->segments->calls;
    segment_use_arrays(a,
                       &(struct arrays){small->link, small->level, small->stack,
                                        small->word, LEVELS, FRAMES, WORDS});
  }
  a->learned = false;
  a->spine.count = a->spine.rest = a->spine.frames = 0;
  a->spine.tight = false;
}

bool ljp_segment_deepen(struct ljp_stacks *s, struct ljp_segment *a)
{
  if (a->spine.levels == DEEP_LEVELS)
    return false;
  struct deep *deep = &s->segments->deep[s->segments->next_deep++ % DEEPS];
  if (deep->owner) {
    deep->owner->word = NULL;
    ljp_segment_clear(s, deep->owner);
  }
  deep->owner = a;
  segment_use_arrays(a, &(struct arrays){deep->link, deep->level, deep->stack,
                                         deep->word, DEEP_LEVELS,
                                         LJP_STACK_MAX_FRAMES, DEEP_WORDS});
  ljp_segment_clear(s, a);
  return true;
}
