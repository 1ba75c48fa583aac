/*
** An object's CFI compiled into a table. The frame information is copied out of
** the object first (fault-safely: it may go away), then read from the copy, an
** FDE at a time, so that the work can be spread over many rounds.
**
** What a compiled rule cannot say is left to the interpreter, row by row; so is
** an FDE that cannot be read, and the reason is found again when it is met.
** Safety: writer's side.
*/
#include "profilers/unwind/priv.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/saferead.h"

enum {
  CIES = 16,        /* direct-mapped cache */
  FDES_A_LOOK = 64, /* between two looks at the clock */
  MAX_FRAMES_BYTES = 256 << 20,
  MAX_RULES = 65536
};

struct ljp_unwind_job {
  struct ljp_unwind_object *object;
  struct ljp_unwind_table *table;
  int32_t *index;  /* copy of the object's */
  uint8_t *frames; /* copy of .eh_frame */
  uint64_t frames_at, frames_size;
  uint64_t done;  /* entries of the index */
  uint32_t limit; /* where the last FDE's code ended */
  uint32_t rows_room, rules_room;
  uint32_t *hash; /* of rules: open addressing, id + 1 */
  uint32_t hash_mask;
  struct ljp_cfi_machine machine;
  struct ljp_cfi_cie cies[CIES];
  uint64_t cie_at[CIES];
};

uint64_t ljp_unwind_now_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
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

void ljp_unwind_job_free(struct ljp_unwind_job *job)
{
  if (!job)
    return;
  ljp_unwind_table_free(job->table);
  free(job->index);
  free(job->frames);
  free(job->hash);
  free(job);
}

struct ljp_unwind_object *ljp_unwind_job_object(struct ljp_unwind_job *job)
{
  return job->object;
}

/* -- Rules --------------------------------------------------------------- */

static uint32_t hash_rule(const struct ljp_unwind_rule *rule)
{
  uint64_t words[2] = {0, 0};
  memcpy(words, rule, sizeof *rule);
  uint64_t h = words[0] * UINT64_C(0x9e3779b97f4a7c15);
  h = (h ^ h >> 29 ^ words[1]) * UINT64_C(0xbf58476d1ce4e5b9);
  return (uint32_t)(h >> 32);
}

static bool grow_rules(struct ljp_unwind_job *job)
{
  struct ljp_unwind_table *table = job->table;
  uint32_t room = job->rules_room ? 2 * job->rules_room : 256;
  struct ljp_unwind_rule *rules = realloc(table->rules, room * sizeof *rules);
  if (!rules)
    return false;
  table->rules = rules;
  job->rules_room = room;
  uint32_t *hash = calloc((size_t)room * 4, sizeof *hash);
  if (!hash)
    return false;
  free(job->hash);
  job->hash = hash;
  job->hash_mask = room * 4 - 1;
  for (uint32_t id = 0; id < table->rules_used; id++) {
    uint32_t at = hash_rule(&rules[id]) & job->hash_mask;
    while (hash[at])
      at = (at + 1) & job->hash_mask;
    hash[at] = id + 1;
  }
  return true;
}

static bool intern(struct ljp_unwind_job *job,
                   const struct ljp_unwind_rule *rule, uint16_t *id)
{
  struct ljp_unwind_table *table = job->table;
  if (table->rules_used == job->rules_room && !grow_rules(job))
    return false;
  uint32_t at = hash_rule(rule) & job->hash_mask;
  for (; job->hash[at]; at = (at + 1) & job->hash_mask) {
    uint32_t found = job->hash[at] - 1;
    if (!memcmp(&table->rules[found], rule, sizeof *rule)) {
      *id = (uint16_t)found;
      return true;
    }
  }
  if (table->rules_used == MAX_RULES) {
    *id = LJP_RULE_INTERPRET;
    return true;
  }
  *id = (uint16_t)table->rules_used;
  table->rules[table->rules_used++] = *rule;
  job->hash[at] = table->rules_used;
  return true;
}

void ljp_unwind_make_rule(const struct ljp_cfi_row *row, bool signal,
                          struct ljp_unwind_rule *rule)
{
  memset(rule, 0, sizeof *rule);
  rule->kind = LJP_RULE_INTERPRET;
  if (row->how[LJP_RIP] == LJP_HOW_UNDEFINED) {
    rule->kind = LJP_RULE_END;
    return;
  }
  if (signal || ljp_unwind_lands(row) || row->cfa_how != LJP_HOW_REGISTER ||
      row->how[LJP_RIP] != LJP_HOW_OFFSET || row->arg[LJP_RIP] != -8 ||
      row->how[LJP_RSP] != LJP_HOW_DEFAULT)
    return;
  struct ljp_unwind_rule result = {.cfa_offset = row->cfa_arg,
                                   .kind = LJP_RULE_REGULAR,
                                   .base = row->cfa_reg};
  for (unsigned i = 0; i < LJP_RULE_SAVED; i++) {
    unsigned reg = ljp_rule_saved[i];
    int32_t arg = row->arg[reg];
    if (row->how[reg] == LJP_HOW_DEFAULT || row->how[reg] == LJP_HOW_SAME)
      continue;
    if (row->how[reg] != LJP_HOW_OFFSET || arg % 8 || arg / 8 < INT8_MIN ||
        arg / 8 > INT8_MAX)
      return;
    result.saved |= (uint8_t)(1u << i);
    result.slot[i] = (int8_t)(arg / 8);
  }
  *rule = result;
}

/* -- Rows ---------------------------------------------------------------- */

static bool add_row(struct ljp_unwind_job *job, uint32_t pc, uint16_t rule)
{
  struct ljp_unwind_table *table = job->table;
  if (table->rows && table->pc[table->rows - 1] == pc)
    table->rows--;
  if (table->rows && table->rule[table->rows - 1] == rule)
    return true;
  if (table->rows == job->rows_room) {
    uint32_t room = job->rows_room ? 2 * job->rows_room : 1024;
    uint32_t *pcs = realloc(table->pc, room * sizeof *pcs);
    if (pcs)
      table->pc = pcs;
    uint16_t *rules = realloc(table->rule, room * sizeof *rules);
    if (rules)
      table->rule = rules;
    if (!pcs || !rules)
      return false;
    job->rows_room = room;
  }
  table->pc[table->rows] = pc;
  table->rule[table->rows++] = rule;
  return true;
}

static bool in_frames(const struct ljp_unwind_job *job, uint64_t address,
                      struct ljp_cfi_span *span)
{
  uint64_t at = address - job->frames_at;
  if (at >= job->frames_size)
    return false;
  *span = (struct ljp_cfi_span){job->frames + at,
                                (size_t)(job->frames_size - at), address};
  return true;
}

static const struct ljp_cfi_cie *find_cie(struct ljp_unwind_job *job,
                                          uint64_t address)
{
  unsigned slot = (unsigned)((address >> 3) % CIES);
  struct ljp_cfi_span span;
  if (job->cie_at[slot] == address)
    return &job->cies[slot];
  job->cie_at[slot] = 0;
  if (!in_frames(job, address, &span) ||
      !ljp_cfi_read_cie(&job->cies[slot], span))
    return NULL;
  job->cie_at[slot] = address;
  return &job->cies[slot];
}

static bool read_fde(struct ljp_unwind_job *job, uint64_t address,
                     const struct ljp_cfi_cie **cie, struct ljp_cfi_fde *fde)
{
  struct ljp_cfi_span span;
  uint64_t size, cie_at;
  return in_frames(job, address, &span) &&
         ljp_cfi_head(&span, &size, &cie_at) && cie_at &&
         (*cie = find_cie(job, cie_at)) && ljp_cfi_read_fde(fde, *cie, span);
}

/* Rows for the code of one index entry, which ends where the next begins at
** the latest. False only when out of memory. */
static bool add_entry(struct ljp_unwind_job *job, uint32_t start,
                      uint32_t next_start, uint64_t fde_at)
{
  const struct ljp_unwind_object *object = job->object;
  struct ljp_cfi_machine *machine = &job->machine;
  const struct ljp_cfi_cie *cie;
  struct ljp_cfi_fde fde;

  if (start > job->limit && !add_row(job, job->limit, LJP_RULE_NONE))
    return false;
  if (!read_fde(job, fde_at, &cie, &fde) || fde.start - object->lo != start) {
    job->limit = next_start;
    return add_row(job, start, LJP_RULE_INTERPRET);
  }
  uint64_t end = fde.end - object->lo;
  job->limit = end < next_start ? (uint32_t)end : next_start;
  ljp_cfi_start(machine, cie, &fde);
  for (uint64_t at = start; at < job->limit;) {
    struct ljp_unwind_rule rule;
    uint16_t id = LJP_RULE_INTERPRET;
    bool sane = ljp_cfi_next(machine, &fde);
    if (sane) {
      ljp_unwind_make_rule(&machine->row, cie->signal, &rule);
      if (!intern(job, &rule, &id))
        return false;
    }
    if (!add_row(job, (uint32_t)at, id))
      return false;
    if (!sane)
      break;
    at = machine->next - object->lo;
  }
  return true;
}

/* -- The whole ----------------------------------------------------------- */

static bool finish(struct ljp_unwind_job *job)
{
  struct ljp_unwind_table *table = job->table;
  if (!add_row(job, job->limit, LJP_RULE_NONE))
    return false;
  uint32_t last = table->pc[table->rows - 1];
  while ((last >> table->shift) > table->rows / 2)
    table->shift++;
  table->buckets = (last >> table->shift) + 1;
  table->start = malloc(((size_t)table->buckets + 1) * sizeof *table->start);
  if (!table->start)
    return false;
  uint32_t row = 0;
  for (uint32_t bucket = 0; bucket < table->buckets; bucket++) {
    while (row + 1 < table->rows && table->pc[row + 1] <= bucket
                                                              << table->shift)
      row++;
    table->start[bucket] = row;
  }
  table->start[table->buckets] = table->rows - 1;
  /* Give back what growing left over; a failure to shrink is none. */
  if (!table->rows)
    return true;
  void *smaller = realloc(table->pc, table->rows * sizeof *table->pc);
  if (smaller)
    table->pc = smaller;
  smaller = realloc(table->rule, table->rows * sizeof *table->rule);
  if (smaller)
    table->rule = smaller;
  smaller = NULL;
  if (table->rules_used)
    smaller = realloc(table->rules, table->rules_used * sizeof *table->rules);
  if (smaller)
    table->rules = smaller;
  return true;
}

/* Copies index and frames; finds out how far the frames reach. */
static bool copy_frames(struct ljp_unwind_job *job)
{
  const struct ljp_unwind_object *object = job->object;
  size_t bytes = (size_t)object->index_count * 8;
  uint64_t first = UINT64_MAX, last = 0;
  uint8_t head_bytes[16];
  job->index = malloc(bytes);
  if (!job->index ||
      ljp_safe_copy(job->index, (const void *)(uintptr_t)object->index,
                    bytes) != bytes)
    return false;
  for (uint64_t i = 0; i < object->index_count; i++) {
    uint64_t at = object->header + (uint64_t)(int64_t)job->index[2 * i + 1];
    if (at < object->lo || at >= object->hi)
      return false;
    first = at < first ? at : first;
    last = at > last ? at : last;
  }
  /* CIEs stand before their FDEs, so the section's start matters. */
  if (object->frames && object->frames < first)
    first = object->frames;
  struct ljp_cfi_span head = {head_bytes, sizeof head_bytes, last};
  uint64_t size, cie;
  if (object->hi - last < sizeof head_bytes ||
      ljp_safe_copy(head_bytes, (const void *)(uintptr_t)last,
                    sizeof head_bytes) != sizeof head_bytes ||
      !ljp_cfi_head(&head, &size, &cie) || size > object->hi - last)
    return false;
  job->frames_at = first;
  job->frames_size = last + size - first;
  if (job->frames_size > MAX_FRAMES_BYTES)
    return false;
  job->frames = malloc((size_t)job->frames_size);
  return job->frames &&
         ljp_safe_copy(job->frames, (const void *)(uintptr_t)first,
                       (size_t)job->frames_size) == job->frames_size;
}

struct ljp_unwind_job *ljp_unwind_job_new(struct ljp_unwind_object *object)
{
  static const struct ljp_unwind_rule none = {.kind = LJP_RULE_NONE};
  static const struct ljp_unwind_rule interpret = {.kind = LJP_RULE_INTERPRET};
  struct ljp_unwind_job *job;
  uint16_t id;
  if (!object->index_count || object->hi - object->lo > UINT32_MAX ||
      !(job = calloc(1, sizeof *job)))
    return NULL;
  job->object = object;
  job->table = calloc(1, sizeof *job->table);
  /* The first two rules have their kind for a number. */
  if (!job->table || !intern(job, &none, &id) ||
      !intern(job, &interpret, &id) || !add_row(job, 0, LJP_RULE_NONE) ||
      !copy_frames(job)) {
    ljp_unwind_job_free(job);
    return NULL;
  }
  return job;
}

/* The code offset of an index entry; false if it leaves the object. */
static bool entry_start(const struct ljp_unwind_job *job, uint64_t i,
                        uint32_t *start)
{
  const struct ljp_unwind_object *object = job->object;
  uint64_t size = object->hi - object->lo;
  if (i == object->index_count) {
    *start = (uint32_t)size;
    return true;
  }
  uint64_t offset =
      object->header + (uint64_t)(int64_t)job->index[2 * i] - object->lo;
  *start = (uint32_t)offset;
  return offset < size;
}

static bool do_entry(struct ljp_unwind_job *job)
{
  uint64_t i = job->done++;
  uint32_t start, next_start;
  /* Out of order: then a search in it finds anything; do not compile. */
  if (!entry_start(job, i, &start) || !entry_start(job, i + 1, &next_start) ||
      next_start < start)
    return false;
  return next_start == start ||
         add_entry(job, start, next_start,
                   job->object->header +
                       (uint64_t)(int64_t)job->index[2 * i + 1]);
}

bool ljp_unwind_job_run(struct ljp_unwind_job *job, uint64_t until_ns,
                        const _Atomic uint32_t *hurried,
                        struct ljp_unwind_table **table)
{
  uint64_t count = job->object->index_count;
  bool ok = true;
  do {
    for (int i = 0; ok && i < FDES_A_LOOK && job->done < count; i++)
      ok = do_entry(job);
    if (!ok || job->done == count) {
      *table = NULL;
      if (ok && finish(job)) {
        *table = job->table;
        job->table = NULL;
      }
      ljp_unwind_job_free(job);
      return true;
    }
  } while (!(hurried && atomic_load_explicit(hurried, memory_order_relaxed)) &&
           ljp_unwind_now_ns() < until_ns);
  return false;
}
