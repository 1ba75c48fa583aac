/*
** Writes collapsed stacks: one line root;...;leaf COUNT for each distinct
** stack.
*/
#include <stdlib.h>

#include "tools/export/export.h"

struct collapsed {
  struct ljp_export *e;
  struct ljp_folded folded;
  uint64_t *sums; /* By folded node. */
};

static void collapsed_put_label(const struct collapsed *c, uint32_t label)
{
  char small[LJP_FRAME_NAME_BYTES], *text = small;
  uint32_t frame = c->folded.labels.frame[label];
  size_t n = ljp_frame_name(c->e->p, frame, c->e->how, small, sizeof small);
  if (n >= sizeof small && (text = malloc(n + 1)))
    ljp_frame_name(c->e->p, frame, c->e->how, text, n + 1);
  if (!text) { /* Out of memory: the name is cut, not lost. */
    text = small;
    n = sizeof small - 1;
  }
  ljp_print_plain(c->e->out, ljp_str(text, n), ';');
  if (text != small)
    free(text);
}

static void collapsed_put_line(const struct collapsed *c, uint32_t node)
{
  static uint32_t path[LJP_EXPORT_DEPTH];
  uint32_t n = 0;
  for (uint32_t at = node; at && n < LJP_EXPORT_DEPTH;
       at = c->folded.parent[at])
    path[n++] = at;
  while (n--) {
    collapsed_put_label(c, c->folded.label[path[n]]);
    ljp_print_str(c->e->out, n ? ";" : " ");
  }
  ljp_print_dec(c->e->out, c->sums[node]);
  ljp_print_str(c->e->out, "\n");
}

enum ljp_status ljp_export_collapsed(struct ljp_export *e)
{
  struct collapsed c = {.e = e};
  enum ljp_status status = ljp_fold(&c.folded, e);
  if (status)
    return status;
  c.sums = calloc(c.folded.count, sizeof *c.sums);
  ljp_export_start(e);
  for (uint32_t row = 0; c.sums && row < e->p->row_count; row++)
    c.sums[c.folded.of_node[e->p->rows[row].node]] +=
        ljp_export_value(e, row, e->value);
  if (c.sums && c.sums[0]) {
    ljp_print_str(e->out, "(no stack) ");
    ljp_print_dec(e->out, c.sums[0]);
    ljp_print_str(e->out, "\n");
  }
  for (uint32_t node = 1; c.sums && node < c.folded.count; node++)
    if (c.sums[node])
      collapsed_put_line(&c, node);
  e->no_notices = true;
  status = c.sums ? LJP_OK : LJP_ERR_MEM;
  free(c.sums);
  ljp_folded_free(&c.folded);
  return status;
}
