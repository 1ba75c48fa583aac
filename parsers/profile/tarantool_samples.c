/*
** Counts samples in batches: where the bytes lie that a sample is compared with
** cannot be foreseen. Each step prefetches what the next step reads. If symbols
** have changed since a sample was seen, the definitions of its frames are
** looked at first. One thread a table.
*/
#include "parsers/profile/tarantool_samples.h"

#include "parsers/base/array.h"
#include "parsers/profile/pass.h"
#include "src/base/assert.h"

enum { PREFETCH_BYTES = 512 };
#define PIECE_WORDS (LJP_TARANTOOL_SAMPLES_PIECE / sizeof(uint64_t))

enum ljp_status
ljp_tarantool_samples_init(struct ljp_tarantool_samples *s,
                           struct ljp_profile *p,
                           struct ljp_tarantool_symbols *symbols)
{
  s->p = p;
  s->symbols = symbols;
  return ljp_tarantool_stacks_init(&s->stacks);
}

void ljp_tarantool_samples_fini(struct ljp_tarantool_samples *s)
{
  for (uint32_t i = 0; i < s->piece_count; i++)
    ljp_pages_give_back(s->pieces[i], LJP_TARANTOOL_SAMPLES_PIECE);
  s->piece_count = 0;
  ljp_tarantool_stacks_fini(&s->stacks);
  ljp_index_fini(&s->index);
}

/* -- Samples that were seen ------------------------------------------------ */

/* The hash of a sample's bytes, behind which a word can be read. Long ones go
** into four sums that do not wait for each other. */
static inline uint32_t samples_hash(uint64_t seed, const uint8_t *bytes,
                                    uint32_t size)
{
  enum { LANES = 4 };
  uint64_t h[LANES], words[LANES], word, hash = ljp_hash_mix(seed, size);
  if (size >= sizeof words) {
    for (unsigned i = 0; i < LANES; i++)
      h[i] = hash + i;
    for (; size >= sizeof words; bytes += sizeof words, size -= sizeof words) {
      memcpy(words, bytes, sizeof words);
      for (unsigned i = 0; i < LANES; i++)
        h[i] = ljp_hash_mix(h[i], words[i]);
    }
    hash = ljp_hash_mix(ljp_hash_mix(h[0], h[1]), ljp_hash_mix(h[2], h[3]));
  }
  for (; size >= sizeof word; bytes += sizeof word, size -= sizeof word) {
    memcpy(&word, bytes, sizeof word);
    hash = ljp_hash_mix(hash, word);
  }
  if (size) {
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word <<= 64 - size * 8;
#else
    word >>= 64 - size * 8;
#endif
    hash = ljp_hash_mix(hash, word);
  }
  return ljp_hash_finish(hash);
}

static struct ljp_tarantool_seen *
samples_at(const struct ljp_tarantool_samples *s, uint32_t place)
{
  uint8_t *piece = s->pieces[place / PIECE_WORDS];
  return (void *)(piece + place % PIECE_WORDS * sizeof(uint64_t));
}

/* Short ones are compared by their first and last words. */
static inline bool samples_equal(const struct ljp_tarantool_seen *seen,
                                 const struct ljp_tarantool_sample *sample)
{
  const uint32_t size = sample->size;
  uint64_t a[2], b[2];
  if (seen->size != size)
    return false;
  if (size < sizeof *a || size > sizeof a)
    return memcmp(seen->bytes, sample->bytes, size) == 0;
  memcpy(&a[0], seen->bytes, sizeof *a);
  memcpy(&b[0], sample->bytes, sizeof *b);
  memcpy(&a[1], seen->bytes + size - sizeof *a, sizeof *a);
  memcpy(&b[1], sample->bytes + size - sizeof *b, sizeof *b);
  return a[0] == b[0] && a[1] == b[1];
}

/* Keeps a sample, if there is room for it. */
static enum ljp_status samples_keep(struct ljp_tarantool_samples *s,
                                    struct ljp_index_slot *slot, uint32_t hash,
                                    const struct ljp_tarantool_sample *sample,
                                    const struct ljp_tarantool_seen *fresh)
{
  size_t bytes = sizeof *fresh + sample->size;
  bytes += -bytes % sizeof(uint64_t);
  if (bytes > LJP_TARANTOOL_SAMPLES_PIECE)
    return LJP_OK;
  if (!s->piece_count || bytes > LJP_TARANTOOL_SAMPLES_PIECE - s->used) {
    if (s->piece_count == LJP_TARANTOOL_SAMPLES_PIECES)
      return LJP_OK;
    uint8_t *piece = ljp_pages_take(LJP_TARANTOOL_SAMPLES_PIECE);
    if (!piece)
      return LJP_ERR_MEM;
    s->pieces[s->piece_count++] = piece;
    s->used = 0;
  }
  uint32_t place = (uint32_t)((s->piece_count - 1) * PIECE_WORDS +
                              s->used / sizeof(uint64_t));
  struct ljp_tarantool_seen *to = samples_at(s, place);
  *to = *fresh;
  to->size = sample->size;
  memcpy(to->bytes, sample->bytes, sample->size);
  ljp_index_put(&s->index, slot, hash, place);
  s->used += bytes;
  return LJP_OK;
}

/* -- Counting -------------------------------------------------------------- */

static uint8_t samples_state(unsigned state)
{
  if (state == LJP_LJP_LFUNC)
    return LJP_STATE_LUA;
  switch (state) {
#define LJP_X(name, number, text, ours)                                        \
  case number:                                                                 \
    return LJP_VMSTATE_##ours;
    LJP_LJP_STATE_LIST(LJP_X)
#undef LJP_X
  }
  return LJP_VMSTATE_UNKNOWN;
}

/* Finds the row of a sample by its stack. */
static enum ljp_status samples_walk(struct ljp_tarantool_samples *s,
                                    const struct ljp_tarantool_sample *sample,
                                    struct ljp_tarantool_seen *seen)
{
  struct ljp_profile_context context = {.kind = LJP_PRODUCER_CPU,
                                        .state = samples_state(sample->state)};
  uint32_t node, id;
  seen->generation = s->symbols->generation;
  enum ljp_status status = ljp_tarantool_stack(&s->stacks, s->symbols, s->p,
                                               sample, &node, &seen->cut);
  if (status)
    return status;
  context.cut = seen->cut;
  status = ljp_profile_intern_context(s->p, &context, &id);
  return status ? status : ljp_profile_intern_row(s->p, node, id, &seen->row);
}

static enum ljp_status samples_count(struct ljp_tarantool_samples *s,
                                     const struct ljp_tarantool_sample *sample,
                                     uint32_t hash)
{
  struct ljp_tarantool_seen fresh = {0}, *seen = &fresh;
  struct ljp_profile *p = s->p;
  enum ljp_status status;
  if (!ljp_index_reserve(&s->index))
    return LJP_ERR_MEM;
  struct ljp_index_slot *slot = ljp_index_at(&s->index, hash);
  for (; slot->item; slot = ljp_index_next(&s->index, slot))
    if (slot->hash == hash &&
        LJP_LIKELY(samples_equal(samples_at(s, slot->item - 1), sample))) {
      seen = samples_at(s, slot->item - 1);
      break;
    }
  if (seen == &fresh) {
    if ((status = samples_walk(s, sample, seen)) ||
        (status = samples_keep(s, slot, hash, sample, seen)))
      return status;
  } else if (LJP_UNLIKELY(seen->generation != s->symbols->generation)) {
    if (ljp_tarantool_symbols_hold(s->symbols, p, sample, seen->generation))
      seen->generation = s->symbols->generation;
    else if ((status = samples_walk(s, sample, seen)))
      return status;
  }
  struct ljp_profile_row *row = &p->rows[seen->row];
  row->count++;
  row->weight++;
  p->totals.cut[seen->cut]++;
  p->totals.too_many += row->node == LJP_NODE_TOO_MANY;
  p->totals.no_stack += row->node == LJP_NODE_NO_STACK;
  return LJP_OK;
}

/* -- Batches --------------------------------------------------------------- */

/* Prefetches what a sample will be compared with. */
static inline void samples_prefetch(const struct ljp_tarantool_samples *s,
                                    uint32_t i)
{
  const struct ljp_index_slot *slot = ljp_index_at(&s->index, s->hash[i]);
  if (!slot->item || slot->hash != s->hash[i])
    return;
  const uint8_t *seen = (const uint8_t *)samples_at(s, slot->item - 1);
  for (uint32_t at = 0; at < s->batch[i].size && at < PREFETCH_BYTES;
       at += LJP_CACHE_LINE_BYTES)
    __builtin_prefetch(seen + at);
}

static enum ljp_status samples_take(struct ljp_tarantool_samples *s,
                                    uint32_t count)
{
  enum ljp_status status = LJP_OK;
  if (!ljp_index_reserve(&s->index))
    return LJP_ERR_MEM;
  for (uint32_t i = 0; i < count; i++) {
    s->hash[i] =
        samples_hash(s->p->strings.seed, s->batch[i].bytes, s->batch[i].size);
    __builtin_prefetch(ljp_index_at(&s->index, s->hash[i]));
  }
  for (uint32_t i = 0; i < count; i++)
    samples_prefetch(s, i);
  for (uint32_t i = 0; i < count && !status; i++)
    status = samples_count(s, &s->batch[i], s->hash[i]);
  return status;
}

enum ljp_status
ljp_tarantool_samples_take(struct ljp_tarantool_samples *s,
                           const struct ljp_tarantool_sample *sample)
{
  s->batch[0] = *sample;
  return samples_take(s, 1);
}

enum ljp_status ljp_tarantool_samples_read(struct ljp_tarantool_samples *s,
                                           struct ljp_tarantool_reader *reader)
{
  enum ljp_status status = LJP_OK;
  uint32_t count;
  while (!status && (count = ljp_tarantool_next_samples(reader, s->batch,
                                                        LJP_TARANTOOL_SAMPLES)))
    if (!s->p->options.no_samples)
      status = samples_take(s, count);
  return status;
}
