/*
** Rows: the samples of a view by time, context and stack. Samples with the same
** tick, context and stack form one row. If there are too many rows, the ticks
** are lengthened: sums stay exact, only the time becomes coarser. One thread.
*/
#ifndef LJP_TOOLS_ROWS_H
#define LJP_TOOLS_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/status.h"

struct ljp_row {
  uint32_t tick, node, context;
  uint64_t count, weight;
};

struct ljp_rows {
  struct ljp_row *rows;
  size_t count, room;
  uint64_t tick_ns;
  bool sorted;
};

#define LJP_ROWS_TICK_NS 10000u /* Initial length of a tick. */
#ifdef LJP_DEBUG                /* Small, so that tests reach it. */
#define LJP_ROWS_MOST 1000u
#else
#define LJP_ROWS_MOST 2000000u
#endif

void ljp_rows_init(struct ljp_rows *rows);
void ljp_rows_fini(struct ljp_rows *rows);

/* time_ns counts from the start of the session. LJP_ERR_MEM. */
enum ljp_status ljp_rows_add(struct ljp_rows *rows, uint64_t time_ns,
                             uint32_t node, uint32_t context, uint64_t count,
                             uint64_t weight);

/* Sorts by time and makes ticks at least this long. */
void ljp_rows_finish(struct ljp_rows *rows, uint64_t tick_ns);

/* The next longer tick of 10, 20, 50, 100 ... us. */
uint64_t ljp_rows_next_tick(uint64_t tick_ns);

#endif
