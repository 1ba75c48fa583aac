/*
** See heap_births.h. The trace tree is that part of the profile's stack tree at
** which objects of the snapshot were allocated; its counts are all allocations
** of the session.
*/
#include "tools/export/heap_births.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/profile/frame_name.h"
#include "parsers/stream/reader.h"
#include "tools/shared/command.h"

enum { BIRTHS_SAMPLES = 500, BIRTHS_MICRO = 1000 };

static void births_drop_profile(struct ljp_heap_births *b)
{
  ljp_profile_free(b->p);
  b->p = NULL;
}

static uint32_t births_node(const struct ljp_heap_births *b,
                            const struct ljp_birth *birth)
{
  return b->p->rows[birth->row].node;
}

/* Which nodes and frames are written. */
static enum ljp_status births_choose(struct ljp_heap_births *b,
                                     const struct ljp_graph *g)
{
  const struct ljp_profile *p = b->p;
  b->wanted = calloc(p->node_count + (size_t)1, 1);
  b->child = calloc(p->node_count + (size_t)1, sizeof *b->child);
  b->sibling = calloc(p->node_count + (size_t)1, sizeof *b->sibling);
  b->frame = calloc(p->frame_count + (size_t)1, sizeof *b->frame);
  if (!b->wanted || !b->child || !b->sibling || !b->frame)
    return LJP_ERR_MEM;
  for (uint32_t i = 1; i < g->count; i++) {
    const struct ljp_birth *birth = ljp_graph_birth(&b->of, i);
    if (!birth)
      continue;
    b->count++;
    b->wanted[births_node(b, birth)] = 1;
  }
  for (uint32_t i = p->node_count; i-- > 1;) {
    uint32_t up = p->nodes[i].parent;
    if (!b->wanted[i])
      continue;
    b->wanted[up] = 1;
    b->sibling[i] = b->child[up];
    b->child[up] = i;
    if (!b->frame[p->nodes[i].frame])
      b->frame[p->nodes[i].frame] = ++b->frames;
  }
  /* The numbers in the order of frames, after that of the root. */
  b->frames = 0;
  for (uint32_t i = 0; i < p->frame_count; i++)
    if (b->frame[i])
      b->frame[i] = ++b->frames;
  return LJP_OK;
}

enum ljp_status ljp_heap_births_load(struct ljp_heap_births *b,
                                     const struct ljp_graph *g,
                                     const char *file, bool no_symbols,
                                     const char *label_key)
{
  char error[LJP_READER_ERROR_BYTES + 64];
  const struct ljp_profile_options options = {.no_symbols = no_symbols,
                                              .no_samples = true,
                                              .label_key = label_key,
                                              .label_frames = label_key != NULL,
                                              .births = g->head.snapshot};
  *b = (struct ljp_heap_births){.p = NULL};
  if (ljp_profile_load(file, &options, &b->p, error)) {
    b->p = NULL;
    if (label_key)
      ljp_command_error("export", "%s: %s", file, error);
    else
      ljp_command_note("export", "%s: allocations are left out: %s", file,
                       error);
    return label_key ? LJP_ERR_LIMIT : LJP_OK;
  }
  if (!b->p->births.found || !b->p->births.count) {
    births_drop_profile(b);
    return LJP_OK;
  }
  enum ljp_status status = ljp_graph_births_init(&b->of, g, &b->p->births);
  return status ? status : births_choose(b, g);
}

void ljp_heap_births_fini(struct ljp_heap_births *b)
{
  if (b->p) {
    ljp_graph_births_fini(&b->of);
    births_drop_profile(b);
  }
  free(b->wanted);
  free(b->child);
  free(b->sibling);
  free(b->frame);
}

uint32_t ljp_heap_births_trace(const struct ljp_heap_births *b, uint32_t node)
{
  const struct ljp_birth *birth = b->p ? ljp_graph_birth(&b->of, node) : NULL;
  return birth ? births_node(b, birth) + 1 : 0;
}

uint32_t ljp_heap_births_id(const struct ljp_heap_births *b, uint32_t node,
                            unsigned parts)
{
  const struct ljp_birth *birth =
      b->p && node && !b->too_many ? ljp_graph_birth(&b->of, node) : NULL;
  return birth ? (uint32_t)(LJP_HEAP_BIRTHS_FIRST_ID + birth->event * parts)
               : 0;
}

/* -- Sections of the file -------------------------------------------------- */

static uint32_t births_name(struct ljp_heap_names *names, struct ljp_str text)
{
  return text.len ? ljp_heap_names_add(names, text.data, text.len) : 0;
}

void ljp_heap_births_functions(const struct ljp_heap_births *b,
                               struct ljp_heap_names *names,
                               struct ljp_print *out)
{
  const struct ljp_profile *p = b->p;
  ljp_print_format(out, "\n0,%" PRIu32 ",0,0,0,0",
                   ljp_heap_names_add(names, "(root)", 6));
  for (uint32_t i = 0; i < p->frame_count; i++) {
    const struct ljp_profile_frame *f = &p->frames[i];
    char text[LJP_FRAME_NAME_BYTES];
    if (!b->frame[i])
      continue;
    size_t n = ljp_frame_function_text(p, i, text, sizeof text);
    uint32_t name = births_name(
        names, ljp_str(text, n < sizeof text ? n : sizeof text - 1));
    uint32_t file = births_name(names, ljp_profile_str(p, f->file));
    uint32_t line = f->line ? f->line : f->first_line;
    ljp_print_format(
        out, ",\n%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",0",
        f->function, name, file, file, line ? line - 1 : 0);
  }
}

/* Allocations at a node, of all rows. */
static enum ljp_status births_sums(const struct ljp_profile *p,
                                   uint64_t (**sums)[2])
{
  *sums = calloc(p->node_count + (size_t)1, sizeof **sums);
  if (!*sums)
    return LJP_ERR_MEM;
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    const struct ljp_profile_memory *m = &p->memory[row->memory];
    if (!row->memory)
      continue;
    (*sums)[row->node][0] += (m->alloc_objects + LJP_OBJECT / 2) / LJP_OBJECT;
    (*sums)[row->node][1] += m->alloc_bytes;
  }
  return LJP_OK;
}

/* Depth first; the tree is as deep as stacks are. */
void ljp_heap_births_tree(const struct ljp_heap_births *b,
                          struct ljp_print *out)
{
  const struct ljp_profile *p = b->p;
  uint64_t(*sums)[2];
  if (births_sums(p, &sums)) /* The tree then has no counts. */
    sums = NULL;
  for (uint32_t at = 0;;) {
    ljp_print_format(out, "%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",[",
                     at + 1, at ? b->frame[p->nodes[at].frame] : 0,
                     sums ? sums[at][0] : 0, sums ? sums[at][1] : 0);
    if (b->child[at]) {
      at = b->child[at];
      continue;
    }
    ljp_print_str(out, "]");
    while (at && !b->sibling[at]) {
      at = p->nodes[at].parent;
      ljp_print_str(out, "]");
    }
    if (!at)
      break;
    at = b->sibling[at];
    ljp_print_str(out, ",");
  }
  free(sums);
}

/* When allocations had which ids: the last one of each span of time. What has no
** birth comes before all. */
enum ljp_status ljp_heap_births_samples(const struct ljp_heap_births *b,
                                        const struct ljp_graph *g,
                                        unsigned parts, struct ljp_print *out)
{
  uint64_t *last = calloc(BIRTHS_SAMPLES, sizeof *last);
  uint64_t end = b->p->births.time_ns / 1000000 + 1, before;
  if (!last)
    return LJP_ERR_MEM;
  for (uint32_t i = 1; i < g->count; i++) {
    const struct ljp_birth *birth = ljp_graph_birth(&b->of, i);
    if (!birth)
      continue;
    uint64_t at = birth->ms * (uint64_t)BIRTHS_SAMPLES / end;
    at = at < BIRTHS_SAMPLES ? at : BIRTHS_SAMPLES - 1;
    last[at] = birth->event > last[at] ? birth->event : last[at];
  }
  before = 0;
  ljp_print_format(out, "\n0,%" PRIu32,
                   (LJP_HEAP_BIRTHS_FIRST_ID - 1) << 1 | 1);
  for (uint64_t i = 0; i < BIRTHS_SAMPLES; i++) {
    uint64_t us = (i + 1) * end * BIRTHS_MICRO / BIRTHS_SAMPLES;
    if (last[i] <= before || us > UINT32_MAX)
      continue;
    before = last[i];
    ljp_print_format(
        out, ",\n%" PRIu64 ",%" PRIu64, us,
        (LJP_HEAP_BIRTHS_FIRST_ID + before * parts + parts - 1) << 1 | 1);
  }
  free(last);
  return LJP_OK;
}
