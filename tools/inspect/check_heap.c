/*
** See check_heap.h.
*/
#include "tools/inspect/check_heap.h"

#include <inttypes.h>

static void check_snapshot_json(struct ljp_shower *show,
                                const struct ljp_snapshot *n)
{
  ljp_show_item(show);
  ljp_show_listed(show, "kind", "snapshot", 0);
  ljp_show_number(show, "snapshot", n->number);
  ljp_show_number(show, "vm", n->vm);
  ljp_show_bool(show, "begins", n->begins);
  ljp_show_bool(show, "ends", n->ends);
  ljp_show_number(show, "objects", n->objects);
  ljp_show_number(show, "references", n->refs);
  if (n->begins)
    ljp_show_number(show, "bytes", n->bytes);
  if (n->ends) {
    ljp_show_number(show, "all_objects", n->end.objects);
    ljp_show_number(show, "all_references", n->end.refs);
  }
  if (n->begins || n->ends)
    ljp_show_number(show, "all_bytes",
                    n->ends ? n->end.bytes : n->head.heap_bytes);
  ljp_show_item_end(show);
}

/* "12 of 34 objects" */
static void check_part(struct ljp_shower *show, uint64_t part, bool known,
                       uint64_t all, const char *what)
{
  ljp_print_format(show->out, "%" PRIu64, part);
  if (known)
    ljp_print_format(show->out, " of %" PRIu64, all);
  ljp_print_str(show->out, what);
}

static void check_snapshot_text(struct ljp_shower *show,
                                const struct ljp_snapshot *n)
{
  struct ljp_print *out = show->out;
  if (n->announced) {
    ljp_print_format(out,
                     "a heap snapshot of VM %" PRIu64
                     " is not in the file, only its place among the events\n",
                     n->vm);
    return;
  }
  if (n->begins)
    ljp_print_format(out, "heap snapshot %" PRIu64 " of VM %" PRIu64, n->number,
                     n->vm);
  else
    ljp_print_str(out, "a heap snapshot");
  ljp_print_format(out, " is incomplete%s%s%s: ",
                   n->begins ? "" : ", its beginning is missing",
                   n->begins || n->ends ? "" : ", and",
                   n->ends     ? ""
                   : n->begins ? ", its end is missing"
                               : " its end");
  check_part(show, n->objects, n->ends, n->end.objects, " objects, ");
  check_part(show, n->refs, n->ends, n->end.refs, " references");
  if (n->begins) {
    ljp_print_str(out, ", ");
    check_part(show, n->bytes, true,
               n->ends ? n->end.bytes : n->head.heap_bytes, " bytes");
  }
  ljp_print_str(out, " are there\n");
}

void ljp_check_snapshot(void *ctx, const struct ljp_snapshot *snapshot)
{
  struct ljp_shower *show = ctx;
  if (show->json)
    check_snapshot_json(show, snapshot);
  else
    check_snapshot_text(show, snapshot);
}

void ljp_check_snapshots(struct ljp_shower *show,
                         const struct ljp_snapshots *snapshots)
{
  if (!snapshots->begun && !snapshots->incomplete)
    return;
  if (show->json) {
    ljp_show_number(show, "heap_snapshots", snapshots->begun);
    ljp_show_number(show, "incomplete_heap_snapshots", snapshots->incomplete);
    return;
  }
  ljp_print_format(show->out,
                   "%" PRIu64 " heap snapshot%s, %" PRIu64 " incomplete\n",
                   snapshots->begun, snapshots->begun == 1 ? "" : "s",
                   snapshots->incomplete);
}
