/*
** Tables in the making: rows are appended in the order of their code offsets,
** and equal rules are stored once (a million rows of libLLVM say a thousand
** different things).
** Safety: writer's side.
*/
#include "profilers/unwind/table.h"

#include <stdlib.h>
#include <string.h>

enum { TABLE_MAX_RULES = 65536 };
#ifdef LJP_DEBUG /* So that growth happens in every test. */
enum { TABLE_FIRST_RULES = 2, TABLE_FIRST_ROWS = 1 };
#else
enum { TABLE_FIRST_RULES = 256, TABLE_FIRST_ROWS = 1024 };
#endif

/* Of tables that were freed, entries may remain, so no number is given twice. */
static uint16_t table_next_serial(void)
{
  static _Atomic uint32_t given;
  uint32_t serial = atomic_fetch_add_explicit(&given, 1, memory_order_relaxed);
  if (serial < UINT16_MAX)
    return (uint16_t)(serial + 1);
  atomic_store_explicit(&given, UINT16_MAX, memory_order_relaxed);
  return 0;
}

void ljp_unwind_table_free(struct ljp_unwind_table *table)
{
  if (!table)
    return;
  free(table->pc);
  free(table->rule);
  free(table->start);
  free(table->rules);
  free(table);
}

uint64_t ljp_unwind_table_bytes(const struct ljp_unwind_table *table)
{
  return sizeof *table +
         (uint64_t)table->rows * (sizeof *table->pc + sizeof *table->rule) +
         ((uint64_t)table->buckets + 1) * sizeof *table->start +
         (uint64_t)table->rules_used * sizeof *table->rules;
}

static uint32_t table_hash(const struct ljp_unwind_rule *rule)
{
  uint64_t words[2] = {0, 0};
  memcpy(words, rule, sizeof *rule);
  uint64_t h = words[0] * UINT64_C(0x9e3779b97f4a7c15);
  h = (h ^ h >> 29 ^ words[1]) * UINT64_C(0xbf58476d1ce4e5b9);
  return (uint32_t)(h >> 32);
}

static bool table_grow_rules(struct ljp_unwind_builder *builder)
{
  struct ljp_unwind_table *table = builder->table;
  uint32_t room =
      builder->rules_room ? 2 * builder->rules_room : TABLE_FIRST_RULES;
  struct ljp_unwind_rule *rules = realloc(table->rules, room * sizeof *rules);
  if (!rules)
    return false;
  table->rules = rules;
  builder->rules_room = room;
  uint32_t *hash = calloc((size_t)room * 4, sizeof *hash);
  if (!hash)
    return false;
  free(builder->hash);
  builder->hash = hash;
  builder->hash_mask = room * 4 - 1;
  for (uint32_t id = 0; id < table->rules_used; id++) {
    uint32_t at = table_hash(&rules[id]) & builder->hash_mask;
    while (hash[at])
      at = (at + 1) & builder->hash_mask;
    hash[at] = id + 1;
  }
  return true;
}

bool ljp_unwind_builder_rule(struct ljp_unwind_builder *builder,
                             const struct ljp_unwind_rule *rule, uint16_t *id)
{
  struct ljp_unwind_table *table = builder->table;
  ljp_assert(!rule->zero[0] && !rule->zero[1] && !rule->zero[2]);
  if (table->rules_used == builder->rules_room && !table_grow_rules(builder))
    return false;
  uint32_t at = table_hash(rule) & builder->hash_mask;
  for (; builder->hash[at]; at = (at + 1) & builder->hash_mask) {
    uint32_t found = builder->hash[at] - 1;
    if (!memcmp(&table->rules[found], rule, sizeof *rule)) {
      *id = (uint16_t)found;
      return true;
    }
  }
  if (table->rules_used == TABLE_MAX_RULES) {
    *id = LJP_RULE_INTERPRET;
    return true;
  }
  *id = (uint16_t)table->rules_used;
  table->rules[table->rules_used++] = *rule;
  builder->hash[at] = table->rules_used;
  return true;
}

static bool table_grow_rows(struct ljp_unwind_builder *builder)
{
  struct ljp_unwind_table *table = builder->table;
  uint32_t room =
      builder->rows_room ? 2 * builder->rows_room : TABLE_FIRST_ROWS;
  uint32_t *pcs = realloc(table->pc, room * sizeof *pcs);
  if (pcs)
    table->pc = pcs;
  uint16_t *rules = realloc(table->rule, room * sizeof *rules);
  if (rules)
    table->rule = rules;
  if (!pcs || !rules)
    return false;
  builder->rows_room = room;
  return true;
}

bool ljp_unwind_builder_row(struct ljp_unwind_builder *builder, uint32_t pc,
                            uint16_t rule)
{
  struct ljp_unwind_table *table = builder->table;
  ljp_assert(!table->rows || table->pc[table->rows - 1] <= pc);
  ljp_assert(rule < table->rules_used);
  if (table->rows && table->pc[table->rows - 1] == pc)
    table->rows--;
  if (table->rows && table->rule[table->rows - 1] == rule)
    return true;
  if (table->rows == builder->rows_room && !table_grow_rows(builder))
    return false;
  table->pc[table->rows] = pc;
  table->rule[table->rows++] = rule;
  return true;
}

bool ljp_unwind_builder_init(struct ljp_unwind_builder *builder)
{
  static const struct ljp_unwind_rule first[] = {{.kind = LJP_RULE_NONE},
                                                 {.kind = LJP_RULE_INTERPRET}};
  *builder = (struct ljp_unwind_builder){0};
  builder->table = calloc(1, sizeof *builder->table);
  if (!builder->table || !table_grow_rules(builder) ||
      !table_grow_rows(builder))
    return false;
  for (unsigned i = 0; i < sizeof first / sizeof *first; i++) {
    uint16_t id;
    if (!ljp_unwind_builder_rule(builder, &first[i], &id))
      return false;
    ljp_assert(id == first[i].kind);
  }
  return ljp_unwind_builder_row(builder, 0, LJP_RULE_NONE);
}

/* Makes the index by which searches begin: buckets of 2^shift bytes of code,
** about one for two rows. */
static bool table_make_buckets(struct ljp_unwind_table *table)
{
  uint32_t last = table->pc[table->rows - 1], row = 0;
  while ((last >> table->shift) > table->rows / 2)
    table->shift++;
  table->buckets = (last >> table->shift) + 1;
  table->start = malloc(((size_t)table->buckets + 1) * sizeof *table->start);
  if (!table->start)
    return false;
  for (uint32_t bucket = 0; bucket < table->buckets; bucket++) {
    uint32_t offset = bucket << table->shift;
    while (row + 1 < table->rows && table->pc[row + 1] <= offset)
      row++;
    table->start[bucket] = row;
  }
  table->start[table->buckets] = table->rows - 1;
  return true;
}

/* Gives back the memory that growing left over. An array that cannot be shrunk
** stays as it is. */
static void table_shrink(struct ljp_unwind_table *table)
{
  if (!table->rows || !table->rules_used)
    return;
  void *smaller = realloc(table->pc, table->rows * sizeof *table->pc);
  if (smaller)
    table->pc = smaller;
  smaller = realloc(table->rule, table->rows * sizeof *table->rule);
  if (smaller)
    table->rule = smaller;
  smaller = realloc(table->rules, table->rules_used * sizeof *table->rules);
  if (smaller)
    table->rules = smaller;
}

bool ljp_unwind_builder_finish(struct ljp_unwind_builder *builder,
                               uint32_t limit, struct ljp_unwind_table **out)
{
  struct ljp_unwind_table *table = builder->table;
  if (!ljp_unwind_builder_row(builder, limit, LJP_RULE_NONE) ||
      !table_make_buckets(table))
    return false;
  table_shrink(table);
  table->serial = table_next_serial();
  *out = table;
  builder->table = NULL;
  return true;
}

void ljp_unwind_builder_fini(struct ljp_unwind_builder *builder)
{
  ljp_unwind_table_free(builder->table);
  free(builder->hash);
}
