/*
** The graph of a heap snapshot (RFC 7): objects with their sizes, references with
** their ways, dominators and retained sizes, and a shortest path from a root to
** each object. The file is read twice: objects first, then references, which
** name their targets by address.
**
** Node 0 stands for all that keeps objects alive. It refers to the parts of the
** VM (of which one has the roots), to pinned objects and to those that wait for
** their finalizers. At most some 115 bytes an object with three references. One thread.
*/
#ifndef LJP_PARSERS_HEAP_GRAPH_H
#define LJP_PARSERS_HEAP_GRAPH_H

#include "parsers/base/str.h"
#include "parsers/stream/item.h"
#include "src/base/status.h"

#define LJP_GRAPH_ERROR_BYTES 320
#define LJP_GRAPH_MAX_NODES (UINT32_C(1) << 31)

struct ljp_graph {
  uint32_t count, room; /* Nodes. */
  uint64_t *address, *bytes;
  uint8_t *type, *flags;
  uint32_t *text; /* Strings and prototypes: place in texts[]. */
  uint32_t *line; /* First line of a prototype; ffid of a function. */
  /* References of node i: first[i] ... first[i + 1] - 1. */
  uint32_t *first, *target;
  uint8_t *how; /* enum ljp_heap_how, LJP_HEAP_WEAK */
  /* By how: the node of the key, a number (INTEGER as int32_t, or saturated), the
  ** place of the name in texts[]. */
  uint32_t *name;
  size_t ref_count, ref_room;
  char *texts; /* Each: 4 bytes of length, then the bytes. 0: no text. */
  size_t texts_len, texts_room;
  uint32_t *slots; /* Nodes by address, while the file is read. */
  unsigned slots_shift;

  uint32_t *dominator; /* LJP_DOMINATED_BY_NONE: garbage. */
  uint64_t *retained;
  uint32_t
      *holder; /* The node before on a shortest path; by which reference. */
  uint32_t *held_by;

  struct ljp_rec_heap head;
  struct ljp_rec_heap_end end;
  uint64_t missing_refs; /* To objects that are not in the snapshot. */
  bool ended;            /* There is a HEAP_END. */
  char error[LJP_GRAPH_ERROR_BYTES];
};

/* Reads the last snapshot of a file. On failure graph->error says why. */
enum ljp_status ljp_graph_load(struct ljp_graph *graph, const char *path);
void ljp_graph_fini(struct ljp_graph *graph);

/* What is at a place in texts[]. */
struct ljp_str ljp_graph_text(const struct ljp_graph *graph, uint32_t place);

#endif
