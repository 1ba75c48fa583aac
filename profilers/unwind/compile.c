/*
** Compiling an object's CFI into a table, an FDE at a time, so that the work
** can be spread over many rounds of the writer.
**
** The CFI is copied out of the object first, by fault-safe copies (the object
** may be unloaded meanwhile), and read from the copy. A row that no rule can
** say is left to the interpreter. So is an FDE that cannot be read: the
** interpreter finds the reason again when a step meets it.
** Safety: writer's side.
*/
#include <stdlib.h>

#include "profilers/unwind/table.h"
#include "profilers/unwind/map.h"
#include "src/base/clock.h"
#include "src/base/saferead.h"

enum {
  COMPILE_CIES = 16, /* direct-mapped cache */
  COMPILE_MAX_BYTES = 256 << 20
};
/* FDEs between two looks at the clock. */
#ifdef LJP_DEBUG
enum { COMPILE_SLICE = 3 };
#else
enum { COMPILE_SLICE = 64 };
#endif

struct ljp_unwind_job {
  struct ljp_unwind_object *object;
  struct ljp_unwind_builder builder;
  int32_t *index;  /* copy of the object's */
  uint8_t *frames; /* copy of .eh_frame */
  uint64_t frames_at, frames_size;
  uint64_t done;  /* pairs of the index */
  uint32_t limit; /* where the last FDE's code ended */
  struct ljp_cfi_machine machine;
  struct ljp_cfi_cie cies[COMPILE_CIES];
  uint64_t cie_at[COMPILE_CIES];
};

/* -- Copies ---------------------------------------------------------------- */

/* Copies the index and .eh_frame. The header does not say where .eh_frame ends:
** it ends with the last FDE that the index names. */
static bool compile_copy(struct ljp_unwind_job *job)
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
  /* CIEs come before their FDEs, so copy from the section's start. */
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
  if (job->frames_size > COMPILE_MAX_BYTES)
    return false;
  job->frames = malloc((size_t)job->frames_size);
  return job->frames &&
         ljp_safe_copy(job->frames, (const void *)(uintptr_t)first,
                       (size_t)job->frames_size) == job->frames_size;
}

/* The copy of .eh_frame from an address on. */
static bool compile_span(const struct ljp_unwind_job *job, uint64_t address,
                         struct ljp_cfi_span *span)
{
  uint64_t at = address - job->frames_at;
  if (at >= job->frames_size)
    return false;
  *span = (struct ljp_cfi_span){job->frames + at,
                                (size_t)(job->frames_size - at), address};
  return true;
}

static const struct ljp_cfi_cie *compile_cie(struct ljp_unwind_job *job,
                                             uint64_t address)
{
  unsigned slot = (unsigned)((address >> 3) % COMPILE_CIES);
  struct ljp_cfi_span span;
  if (job->cie_at[slot] == address)
    return &job->cies[slot];
  job->cie_at[slot] = 0;
  if (!compile_span(job, address, &span) ||
      !ljp_cfi_read_cie(&job->cies[slot], span, &job->machine))
    return NULL;
  job->cie_at[slot] = address;
  return &job->cies[slot];
}

static bool compile_read_fde(struct ljp_unwind_job *job, uint64_t address,
                             const struct ljp_cfi_cie **cie,
                             struct ljp_cfi_fde *fde)
{
  struct ljp_cfi_span span;
  uint64_t size, cie_at;
  return compile_span(job, address, &span) &&
         ljp_cfi_head(&span, &size, &cie_at) && cie_at &&
         (*cie = compile_cie(job, cie_at)) && ljp_cfi_read_fde(fde, *cie, span);
}

/* -- Rows ------------------------------------------------------------------ */

/* Makes rows for the code of one FDE. The code ends where that of the next FDE
** begins, if not earlier. False if there is no memory. */
static bool compile_fde(struct ljp_unwind_job *job, uint32_t start,
                        uint32_t next_start, uint64_t fde_at)
{
  const struct ljp_unwind_object *object = job->object;
  struct ljp_cfi_machine *machine = &job->machine;
  const struct ljp_cfi_cie *cie;
  struct ljp_cfi_fde fde;

  if (start > job->limit &&
      !ljp_unwind_builder_row(&job->builder, job->limit, LJP_RULE_NONE))
    return false;
  if (!compile_read_fde(job, fde_at, &cie, &fde) ||
      fde.start - object->lo != start) {
    job->limit = next_start;
    return ljp_unwind_builder_row(&job->builder, start, LJP_RULE_INTERPRET);
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
      if (!ljp_unwind_builder_rule(&job->builder, &rule, &id))
        return false;
    }
    if (!ljp_unwind_builder_row(&job->builder, (uint32_t)at, id))
      return false;
    if (!sane)
      break;
    at = machine->next - object->lo;
  }
  return true;
}

/* The code offset of pair i of the index; false if it is outside the object. */
static bool compile_pair_start(const struct ljp_unwind_job *job, uint64_t i,
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

/* Compiles the next pair of the index. */
static bool compile_next(struct ljp_unwind_job *job)
{
  uint64_t i = job->done++;
  uint32_t start, next_start;
  /* An index out of order: a search in it could find anything, and so would the
  ** table. */
  if (!compile_pair_start(job, i, &start) ||
      !compile_pair_start(job, i + 1, &next_start) || next_start < start)
    return false;
  return next_start == start ||
         compile_fde(job, start, next_start,
                     job->object->header +
                         (uint64_t)(int64_t)job->index[2 * i + 1]);
}

/* -- Jobs ------------------------------------------------------------------ */

struct ljp_unwind_job *ljp_unwind_job_new(struct ljp_unwind_object *object)
{
  struct ljp_unwind_job *job;
  if (!object->index_count || object->hi - object->lo > UINT32_MAX ||
      !(job = calloc(1, sizeof *job)))
    return NULL;
  job->object = object;
  if (!ljp_unwind_builder_init(&job->builder) || !compile_copy(job)) {
    ljp_unwind_job_free(job);
    return NULL;
  }
  return job;
}

void ljp_unwind_job_free(struct ljp_unwind_job *job)
{
  if (!job)
    return;
  ljp_unwind_builder_fini(&job->builder);
  free(job->index);
  free(job->frames);
  free(job);
}

struct ljp_unwind_object *ljp_unwind_job_object(struct ljp_unwind_job *job)
{
  return job->object;
}

bool ljp_unwind_job_run(struct ljp_unwind_job *job, uint64_t until_ns,
                        const _Atomic uint32_t *hurried,
                        struct ljp_unwind_table **table)
{
  uint64_t count = job->object->index_count;
  bool ok = true;
  do {
    for (int i = 0; ok && i < COMPILE_SLICE && job->done < count; i++)
      ok = compile_next(job);
    if (!ok || job->done == count) {
      *table = NULL;
      if (ok)
        ljp_unwind_builder_finish(&job->builder, job->limit, table);
      ljp_unwind_job_free(job);
      return true;
    }
  } while (!(hurried && atomic_load_explicit(hurried, memory_order_relaxed)) &&
           ljp_clock_ns() < until_ns);
  return false;
}
