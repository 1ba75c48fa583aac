/*
** Compiled tables: an object's CFI as sorted rows of code offsets, each with a
** rule that can be applied without parsing.
**
** A rule is either exact or says "interpret": nothing is approximated.
** Building and freeing is the writer's side; reading a finished table is
** LJP_SIGSAFE. Private to profilers/unwind.
*/
#ifndef LJP_UNWIND_TABLE_H
#define LJP_UNWIND_TABLE_H

#include <stdatomic.h>

#include "profilers/unwind/cfi.h"
#include "src/base/assert.h"

struct ljp_unwind_object;

/* -- rule.c ---------------------------------------------------------------- */

/* The registers that rules restore, besides rsp and rip. */
enum { LJP_RULE_SAVED = 6 };
static const uint8_t ljp_rule_saved[LJP_RULE_SAVED] = {
    LJP_RBP, LJP_RBX, LJP_R12, LJP_R13, LJP_R14, LJP_R15};

enum ljp_rule_kind {
  LJP_RULE_NONE,      /* a gap between functions, or CFI that makes no sense */
  LJP_RULE_INTERPRET, /* only CFI can say it: expressions and the like */
  LJP_RULE_END,
  LJP_RULE_REGULAR /* CFA = base + offset, return address just below it */
};

struct ljp_unwind_rule {
  int32_t cfa_offset;
  uint8_t kind, base;
  uint8_t saved;               /* bit i: ljp_rule_saved[i] is on the stack */
  int8_t slot[LJP_RULE_SAVED]; /* where, in words from the CFA */
  uint8_t zero[3];             /* rules are compared byte by byte */
};
_Static_assert(sizeof(struct ljp_unwind_rule) == 16, "a rule is small");

/* The rule that says the same as a row of CFI, or LJP_RULE_INTERPRET if no rule
** can. */
void ljp_unwind_make_rule(const struct ljp_cfi_row *row, bool signal,
                          struct ljp_unwind_rule *rule);

/* -- table.c --------------------------------------------------------------- */

/* Row i covers the code offsets pc[i] up to pc[i + 1] by rules[rule[i]].
** start[b] is the last row that begins at or before offset b << shift: a search
** that begins there takes few steps. */
struct ljp_unwind_table {
  uint32_t rows, buckets, rules_used;
  unsigned shift;
  uint16_t serial; /* no other table has it; 0: there have been too many */
  uint32_t *pc;
  uint16_t *rule;
  uint32_t *start;
  struct ljp_unwind_rule *rules;
};

void ljp_unwind_table_free(struct ljp_unwind_table *table);
uint64_t ljp_unwind_table_bytes(const struct ljp_unwind_table *table);

/* The row that covers an offset. */
LJP_SIGSAFE static inline uint32_t
ljp_unwind_find_row(const struct ljp_unwind_table *table, uint32_t offset)
{
  uint32_t bucket = offset >> table->shift;
  if (bucket >= table->buckets)
    bucket = table->buckets - 1;
  uint32_t low = table->start[bucket];
  uint32_t high = table->start[bucket + 1] + 1;
  /* Row low begins at or before the bucket, so at or before the offset. */
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (table->pc[middle] <= offset)
      low = middle;
    else
      high = middle;
  }
  ljp_assert(table->pc[low] <= offset &&
             (low + 1 == table->rows || offset < table->pc[low + 1]));
  return low;
}

/* Rules of return addresses that were looked up lately, of all tables. At a hundred
** samples a second, the program evicts the profiler's data from the caches between two
** samples, and a search then misses four cache lines of three pages. Most return
** addresses were also in the sample before, and this array has their rules in a few
** lines of one page. Each entry is an offset (32 bits), the serial number of its table
** and the number of the rule (16 bits each), written by one atomic store, so threads and
** handlers need no lock. */
enum { LJP_UNWIND_RECENT_BITS = 8 };
extern _Atomic uint64_t ljp_unwind_recent[1 << LJP_UNWIND_RECENT_BITS];

LJP_SIGSAFE static inline _Atomic uint64_t *
ljp_unwind_recent_at(const struct ljp_unwind_table *table, uint32_t offset)
{
  uint32_t mixed = (offset + table->serial) * UINT32_C(0x9e3779b1);
  return &ljp_unwind_recent[mixed >> (32 - LJP_UNWIND_RECENT_BITS)];
}

/* relaxed: entries say nothing about other memory. */
LJP_SIGSAFE static inline bool
ljp_unwind_recall(const struct ljp_unwind_table *table, uint32_t offset,
                  uint16_t *rule)
{
  uint64_t entry = atomic_load_explicit(ljp_unwind_recent_at(table, offset),
                                        memory_order_relaxed);
  *rule = (uint16_t)entry;
  return table->serial && entry >> 32 == offset &&
         (uint16_t)(entry >> 16) == table->serial;
}

LJP_SIGSAFE static inline void
ljp_unwind_remember(const struct ljp_unwind_table *table, uint32_t offset,
                    uint16_t rule)
{
  if (table->serial)
    atomic_store_explicit(ljp_unwind_recent_at(table, offset),
                          (uint64_t)offset << 32 |
                              (uint64_t)table->serial << 16 | rule,
                          memory_order_relaxed);
}

/* A table in the making. */
struct ljp_unwind_builder {
  struct ljp_unwind_table *table;
  uint32_t rows_room, rules_room;
  uint32_t *hash; /* of rules: open addressing, id + 1 */
  uint32_t hash_mask;
};

/* These return false if there is no memory; then only _fini is allowed. The
** rules LJP_RULE_NONE and LJP_RULE_INTERPRET have their kind for an id. */
bool ljp_unwind_builder_init(struct ljp_unwind_builder *builder);
bool ljp_unwind_builder_rule(struct ljp_unwind_builder *builder,
                             const struct ljp_unwind_rule *rule, uint16_t *id);
/* Appends a row; pc is not below that of the last row. */
bool ljp_unwind_builder_row(struct ljp_unwind_builder *builder, uint32_t pc,
                            uint16_t rule);
/* Ends the last row at limit, and hands the table over. */
bool ljp_unwind_builder_finish(struct ljp_unwind_builder *builder,
                               uint32_t limit, struct ljp_unwind_table **table);
void ljp_unwind_builder_fini(struct ljp_unwind_builder *builder);

/* -- compile.c ------------------------------------------------------------- */

/* The compilation of one object's CFI, slice by slice. */
struct ljp_unwind_job;
/* NULL if there is no memory, or no index that can be compiled. */
struct ljp_unwind_job *ljp_unwind_job_new(struct ljp_unwind_object *object);
/* Works until that CLOCK_MONOTONIC time, or until *hurried (may be NULL) is not
** zero. True when done: *table is then the result, or NULL if compiling failed,
** and the job is freed. */
bool ljp_unwind_job_run(struct ljp_unwind_job *job, uint64_t until_ns,
                        const _Atomic uint32_t *hurried,
                        struct ljp_unwind_table **table);
void ljp_unwind_job_free(struct ljp_unwind_job *job);
struct ljp_unwind_object *ljp_unwind_job_object(struct ljp_unwind_job *job);

#endif
