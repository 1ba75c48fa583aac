/*
** Sorted runs of C functions. Within a run each address occurs once; of equal
** addresses the one in the later run holds. One thread a table.
*/
#include "parsers/tarantool/cfuncs.h"

#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"
#include "src/base/assert.h"

void ljp_cfuncs_fini(struct ljp_cfuncs *c)
{
  free(c->list);
  free(c->spare);
  *c = (struct ljp_cfuncs){0};
}

enum ljp_status ljp_cfuncs_add(struct ljp_cfuncs *c, uint64_t address,
                               uint32_t name)
{
  if (!ljp_array_reserve(&c->list, c->count, &c->room, sizeof *c->list))
    return LJP_ERR_MEM;
  c->list[c->count] = (struct ljp_cfunc){address, name, c->count};
  c->count++;
  return LJP_OK;
}

static int cfuncs_compare(const void *a, const void *b)
{
  const struct ljp_cfunc *x = a, *y = b;
  if (x->address != y->address)
    return x->address < y->address ? -1 : 1;
  return x->age < y->age ? -1 : x->age > y->age;
}

/* Sorts the new ones into a run. */
static void cfuncs_seal(struct ljp_cfuncs *c)
{
  uint32_t begin = c->runs[c->run_count], n = begin;
  qsort(c->list + begin, c->count - begin, sizeof *c->list, cfuncs_compare);
  for (uint32_t i = begin; i < c->count; i++) {
    if (n > begin && c->list[n - 1].address == c->list[i].address)
      n--;
    c->list[n++] = c->list[i];
  }
  c->count = n;
  c->runs[++c->run_count] = n;
}

/* Joins the last two runs. */
static enum ljp_status cfuncs_join(struct ljp_cfuncs *c)
{
  uint32_t a = c->runs[c->run_count - 2], b = c->runs[c->run_count - 1];
  uint32_t a_end = b, n = a;
  uint32_t old = a_end - a;
  while (c->spare_room < old)
    if (!ljp_array_reserve(&c->spare, c->spare_room, &c->spare_room,
                           sizeof *c->spare))
      return LJP_ERR_MEM;
  /* The older run is copied away, so that writing never overtakes the newer. */
  memcpy(c->spare, c->list + a, old * sizeof *c->list);
  for (uint32_t i = 0; i < old || b < c->count;) {
    if (b == c->count ||
        (i < old && c->spare[i].address < c->list[b].address)) {
      c->list[n++] = c->spare[i++];
    } else {
      if (i < old && c->spare[i].address == c->list[b].address)
        i++;
      c->list[n++] = c->list[b++];
    }
  }
  c->count = n;
  c->runs[--c->run_count] = n;
  return LJP_OK;
}

static uint32_t cfuncs_run_size(const struct ljp_cfuncs *c, uint32_t run)
{
  return c->runs[run + 1] - c->runs[run];
}

static enum ljp_status cfuncs_settle(struct ljp_cfuncs *c)
{
  enum ljp_status status;
  if (c->count == c->runs[c->run_count])
    return LJP_OK;
  ljp_assert(c->run_count < LJP_CFUNC_RUNS);
  cfuncs_seal(c);
  while (c->run_count > 1 && cfuncs_run_size(c, c->run_count - 2) <=
                                 2 * cfuncs_run_size(c, c->run_count - 1))
    if ((status = cfuncs_join(c)))
      return status;
  return LJP_OK;
}

enum ljp_status ljp_cfuncs_find(struct ljp_cfuncs *c, uint64_t address,
                                const struct ljp_cfunc **found)
{
  enum ljp_status status = cfuncs_settle(c);
  *found = NULL;
  if (status || !c->list)
    return status;
  for (uint32_t run = c->run_count; run-- > 0;) {
    uint32_t low = c->runs[run], high = c->runs[run + 1];
    while (low < high) { /* Those below low are not above the address. */
      uint32_t middle = low + (high - low) / 2;
      if (c->list[middle].address <= address)
        low = middle + 1;
      else
        high = middle;
    }
    if (low > c->runs[run] &&
        (!*found || c->list[low - 1].address > (*found)->address))
      *found = &c->list[low - 1];
  }
  return LJP_OK;
}
