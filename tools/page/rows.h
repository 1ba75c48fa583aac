/*
** Rows: what was measured, by time, context and stack, for the page. Rows of
** the same tick, context and stack are one. When there are too many, ticks grow
** until there are not: sums stay exact, only the time becomes coarser.
** One thread.
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

#define LJP_ROWS_TICK_NS 10000u /* At first. */
#ifdef LJP_DEBUG                /* So that tests reach it. */
#define LJP_ROWS_MOST 1000u
#else
#define LJP_ROWS_MOST 2000000u
#endif

void ljp_rows_init(struct ljp_rows *rows);
void ljp_rows_fini(struct ljp_rows *rows);

/* time_ns: since the session began. LJP_ERR_MEM. */
enum ljp_status ljp_rows_add(struct ljp_rows *rows, uint64_t time_ns,
                             uint32_t node, uint32_t context, uint64_t count,
                             uint64_t weight);

/* Sorts by time and makes ticks at least this long. */
void ljp_rows_finish(struct ljp_rows *rows, uint64_t tick_ns);

/* The next longer of 10, 20, 50, 100 ... us. */
uint64_t ljp_rows_next_tick(uint64_t tick_ns);

#endif
