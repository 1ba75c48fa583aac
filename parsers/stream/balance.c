/*
** Sums up the CPU time of a stream; see balance.h.
*/
#include "parsers/stream/balance.h"

#include <string.h>

#include "parsers/base/array.h"

void ljp_balance_init(struct ljp_balance *b)
{
  *b = (struct ljp_balance){.cpu = -1};
}

void ljp_balance_fini(struct ljp_balance *b)
{
  free(b->gaps);
  ljp_index_fini(&b->index);
  ljp_balance_init(b);
}

static bool balance_same(const struct ljp_balance_gap *a,
                         const struct ljp_balance_gap *b)
{
  return a->source == b->source && a->thread == b->thread &&
         a->kind == b->kind && a->why == b->why;
}

/* Adds the time to the gap of the same thread and reason. */
static enum ljp_status balance_add(struct ljp_balance *b,
                                   const struct ljp_balance_gap *gap)
{
  if (!ljp_index_reserve(&b->index) ||
      !ljp_array_reserve(&b->gaps, b->gap_count, &b->gap_room, sizeof *b->gaps))
    return LJP_ERR_MEM;
  uint64_t h = ljp_hash_mix(gap->source, gap->thread);
  uint32_t hash = ljp_hash_finish(ljp_hash_mix(h, gap->kind << 8 | gap->why));
  struct ljp_index_slot *slot = ljp_index_at(&b->index, hash);
  for (; slot->item; slot = ljp_index_next(&b->index, slot))
    if (slot->hash == hash && balance_same(&b->gaps[slot->item - 1], gap)) {
      b->gaps[slot->item - 1].ns += gap->ns;
      return LJP_OK;
    }
  if (b->gap_count >= LJP_BALANCE_MAX_GAPS && (gap->thread || gap->source)) {
    const struct ljp_balance_gap rest = {
        .kind = gap->kind, .why = gap->why, .ns = gap->ns};
    return balance_add(b, &rest);
  }
  ljp_index_put(&b->index, slot, hash, b->gap_count);
  b->gaps[b->gap_count++] = *gap;
  return LJP_OK;
}

static enum ljp_status balance_unsampled(struct ljp_balance *b,
                                         const struct ljp_model *model,
                                         const struct ljp_rec_unsampled *u,
                                         uint32_t source)
{
  const struct ljp_rec_thread *t = ljp_model_thread(model, u->thread);
  struct ljp_balance_gap gap = {
      .source = source,
      .thread = u->thread,
      .kind =
          u->kind == LJP_PRODUCER_WALL ? LJP_PRODUCER_WALL : LJP_PRODUCER_CPU,
      .why = u->why < LJP_UNSAMPLED_COUNT ? (uint8_t)u->why : 0,
      .ns = u->ns};
  if (t) {
    gap.tid = t->tid;
    gap.name_bytes =
        t->name.len < sizeof gap.name ? t->name.len : sizeof gap.name;
    memcpy(gap.name, t->name.data, gap.name_bytes);
  }
  if (gap.kind == LJP_PRODUCER_CPU)
    b->unsampled_ns[gap.why] += gap.ns;
  return balance_add(b, &gap);
}

/* Whether samples of the item's block are of CPU time. */
static bool balance_is_cpu(struct ljp_balance *b, const struct ljp_model *model,
                           const struct ljp_item *item)
{
  if (b->cpu < 0) {
    const struct ljp_rec_producer *p =
        ljp_model_producer(model, item->block->head.producer);
    b->cpu = !p || p->kind != LJP_PRODUCER_WALL;
  }
  return b->cpu;
}

enum ljp_status ljp_balance_take(struct ljp_balance *b,
                                 const struct ljp_model *model,
                                 const struct ljp_item *item, uint32_t source)
{
  switch (item->what) {
  case LJP_ITEM_BLOCK:
  case LJP_REC_PRODUCER:
    b->cpu = -1;
    return LJP_OK;
  case LJP_REC_SAMPLES:
    if (balance_is_cpu(b, model, item))
      b->sampled_ns += item->u.sample.weight;
    else
      b->wall_ns += item->u.sample.weight;
    return LJP_OK;
  case LJP_REC_EPOCH:
    if (!b->placed || b->source != source)
      b->at_edge = item->u.epoch.segment != 0;
    b->placed = true;
    b->source = source;
    return LJP_OK;
  case LJP_REC_CPU_TIME:
    if (b->at_edge)
      b->edge_ns += item->u.cpu_time.ns;
    b->at_edge = false;
    b->told = true;
    b->used_ns += item->u.cpu_time.ns;
    return LJP_OK;
  case LJP_REC_UNSAMPLED:
    return balance_unsampled(b, model, &item->u.unsampled, source);
  }
  return LJP_OK;
}

static uint64_t balance_number(struct ljp_str s)
{
  enum { DIGITS = 18 }; /* That many cannot overflow. */
  uint64_t number = 0;
  for (uint32_t i = 0; i < s.len && i < DIGITS; i++) {
    unsigned digit = (unsigned)(s.data[i] - '0');
    if (digit > 9)
      break;
    number = number * 10 + digit;
  }
  return number;
}

enum ljp_status ljp_balance_finish(struct ljp_balance *b,
                                   const struct ljp_model *model,
                                   uint32_t source)
{
  const struct ljp_rec_info *info = ljp_model_info(model, "cpu.unsampled_ns");
  struct ljp_rec_unsampled all = {.kind = LJP_PRODUCER_CPU};
  for (uint32_t i = 0; i < b->gap_count; i++)
    if (b->gaps[i].source == source)
      return LJP_OK;
  if (!info || !(all.ns = balance_number(info->value)))
    return LJP_OK;
  return balance_unsampled(b, model, &all, source);
}

uint64_t ljp_balance_used(const struct ljp_balance *b)
{
  uint64_t own = b->unsampled_ns[LJP_UNSAMPLED_WRITER];
  return b->used_ns > own ? b->used_ns - own : 0;
}

uint64_t ljp_balance_missing(const struct ljp_balance *b)
{
  uint64_t sum = 0;
  for (unsigned why = 0; why < LJP_UNSAMPLED_COUNT; why++)
    if (why != LJP_UNSAMPLED_LOST && why != LJP_UNSAMPLED_WRITER)
      sum += b->unsampled_ns[why];
  return sum;
}

int64_t ljp_balance_difference(const struct ljp_balance *b)
{
  uint64_t known = b->sampled_ns;
  for (unsigned why = 0; why < LJP_UNSAMPLED_COUNT; why++)
    known += b->unsampled_ns[why];
  return b->told ? (int64_t)(b->used_ns - known) : 0;
}

bool ljp_balance_off(const struct ljp_balance *b)
{
  int64_t ns = ljp_balance_difference(b);
  uint64_t far = (uint64_t)(ns < 0 ? -ns : ns);
  far -= far < b->edge_ns ? far : b->edge_ns;
  return far > UINT64_C(20000000) && far > b->used_ns / 50;
}
