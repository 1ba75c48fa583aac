/*
** What files of other profilers tell of places in memory: how much was
** reallocated and freed there, whichever blocks it was.
*/
#include <inttypes.h>
#include <stdlib.h>

#include "tools/report/groups.h"

bool ljp_report_has_sites(const struct ljp_report *r)
{
  return r->p->sites && r->select.measure == LJP_MEASURE_ALLOC &&
         ljp_by_of_frame(r->by);
}

struct ljp_site_sums *ljp_report_sites(const struct ljp_report *r,
                                       const struct ljp_groups *groups)
{
  const struct ljp_profile *p = r->p;
  struct ljp_site_sums *sums = calloc((size_t)groups->count + 1, sizeof *sums);
  for (uint32_t i = 0; sums && i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    if (!r->select.in[i] || !row->memory)
      continue;
    const struct ljp_profile_site *site = &p->sites[row->memory];
    struct ljp_site_sums *to = &sums[groups->of_node[row->node]];
    to->reallocs += p->memory[row->memory].realloc_events;
    to->realloc_bytes += site->realloc_bytes;
    to->realloc_old_bytes += site->realloc_old_bytes;
    to->frees += site->frees;
    to->free_bytes += site->free_bytes;
  }
  return sums;
}

void ljp_report_json_site(const struct ljp_report *r,
                          const struct ljp_site_sums *s)
{
  ljp_print_format(r->out,
                   ",\"reallocs\":%" PRIu64 ",\"realloc_bytes\":%" PRIu64
                   ",\"realloc_old_bytes\":%" PRIu64 ",\"frees\":%" PRIu64
                   ",\"free_bytes\":%" PRIu64,
                   s->reallocs, s->realloc_bytes, s->realloc_old_bytes,
                   s->frees, s->free_bytes);
}

void ljp_report_text_site(const struct ljp_report *r,
                          const struct ljp_site_sums *s)
{
  char amount[24];
  ljp_amount(r, s->free_bytes, amount);
  ljp_print_format(r->out, " %10" PRIu64 " %10" PRIu64 " %10s", s->reallocs,
                   s->frees, amount);
}
