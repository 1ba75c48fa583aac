/*
** Stores and coarsens the rows of a view.
*/
#include "tools/page/rows.h"

#include <stdlib.h>

#include "src/base/assert.h"

void ljp_rows_init(struct ljp_rows *rows)
{
  *rows = (struct ljp_rows){.tick_ns = LJP_ROWS_TICK_NS, .sorted = true};
}

void ljp_rows_fini(struct ljp_rows *rows)
{
  free(rows->rows);
  ljp_rows_init(rows);
}

uint64_t ljp_rows_next_tick(uint64_t tick_ns)
{
  uint64_t power = LJP_ROWS_TICK_NS;
  while (power * 10 <= tick_ns)
    power *= 10;
  return tick_ns / power >= 5 ? power * 10
                              : power * (tick_ns / power >= 2 ? 5 : 2);
}

static int rows_by_time(const void *a, const void *b)
{
  const struct ljp_row *x = a, *y = b;
#define LJP_BY(field)                                                          \
  if (x->field != y->field)                                                    \
    return x->field < y->field ? -1 : 1;
  LJP_BY(tick)
  LJP_BY(context)
  LJP_BY(node)
#undef LJP_BY
  return 0;
}

static bool rows_same(const struct ljp_row *a, const struct ljp_row *b)
{
  return a->tick == b->tick && a->context == b->context && a->node == b->node;
}

/* Sorts the rows and joins equal ones. */
static void rows_compact(struct ljp_rows *rows)
{
  size_t kept = 0;
  if (!rows->sorted && rows->count)
    qsort(rows->rows, rows->count, sizeof *rows->rows, rows_by_time);
  for (size_t i = 0; i < rows->count; i++) {
    const struct ljp_row *row = &rows->rows[i];
    struct ljp_row *last = kept ? &rows->rows[kept - 1] : NULL;
    if (last && rows_same(last, row)) {
      last->count += row->count;
      last->weight += row->weight;
    } else {
      rows->rows[kept++] = *row;
    }
  }
  ljp_assert(kept <= rows->count);
  rows->count = kept;
  rows->sorted = true;
}

/* Lengthens the ticks. A row goes into the tick in which its old tick
** begins. */
static void rows_coarsen(struct ljp_rows *rows)
{
  uint64_t next = ljp_rows_next_tick(rows->tick_ns);
  ljp_assert(next > rows->tick_ns);
  for (size_t i = 0; i < rows->count; i++)
    rows->rows[i].tick = (uint32_t)(rows->rows[i].tick * rows->tick_ns / next);
  rows->tick_ns = next;
  rows->sorted = false; /* Rows of one new tick are not sorted. */
  rows_compact(rows);
}

static enum ljp_status rows_grow(struct ljp_rows *rows)
{
  if (rows->count >= LJP_ROWS_MOST) {
    rows_compact(rows);
    while (rows->count > LJP_ROWS_MOST / 2 && rows->tick_ns < UINT32_MAX)
      rows_coarsen(rows);
  }
  if (rows->count < rows->room)
    return LJP_OK;
  size_t room = rows->room ? rows->room * 2 : 256;
  struct ljp_row *more = realloc(rows->rows, room * sizeof *more);
  if (!more)
    return LJP_ERR_MEM;
  rows->rows = more;
  rows->room = room;
  return LJP_OK;
}

static uint32_t rows_tick(const struct ljp_rows *rows, uint64_t time_ns)
{
  uint64_t tick = time_ns / rows->tick_ns;
  return tick > UINT32_MAX ? UINT32_MAX : (uint32_t)tick;
}

enum ljp_status ljp_rows_add(struct ljp_rows *rows, uint64_t time_ns,
                             uint32_t node, uint32_t context, uint64_t count,
                             uint64_t weight)
{
  enum ljp_status status;
  while (time_ns / rows->tick_ns > UINT32_MAX && rows->tick_ns < UINT32_MAX)
    rows_coarsen(rows);
  struct ljp_row row = {.tick = rows_tick(rows, time_ns),
                        .node = node,
                        .context = context,
                        .count = count,
                        .weight = weight};
  struct ljp_row *last = rows->count ? &rows->rows[rows->count - 1] : NULL;
  if (last && rows_same(last, &row)) {
    last->count += count;
    last->weight += weight;
    return LJP_OK;
  }
  if ((status = rows_grow(rows)) != LJP_OK || !rows->rows)
    return status;
  row.tick =
      rows_tick(rows, time_ns); /* rows_grow() may have lengthened the ticks. */
  rows->sorted = rows->sorted && !rows->count;
  rows->rows[rows->count++] = row;
  return LJP_OK;
}

void ljp_rows_finish(struct ljp_rows *rows, uint64_t tick_ns)
{
  rows_compact(rows);
  while (rows->tick_ns < tick_ns)
    rows_coarsen(rows);
}
