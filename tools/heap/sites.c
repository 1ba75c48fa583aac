/*
** See sites.h; and the view of allocation sites.
*/
#include "tools/heap/sites.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"
#include "parsers/base/whole.h"
#include "parsers/profile/frame_name.h"
#include "tools/heap/view.h"

void ljp_heap_site_text(const struct ljp_heap_sites *sites, uint32_t site,
                        struct ljp_heap_text *t)
{
  char name[LJP_FRAME_NAME_BYTES];
  ljp_frame_name(sites->p, sites->list[site].frame, LJP_NAME_LINES, name,
                 sizeof name);
  ljp_heap_bytes(t, ljp_str(name, strlen(name)), 300);
}

/* Frames with the same name are one site. */
static uint32_t sites_add(struct ljp_heap_sites *s, uint32_t frame)
{
  char name[LJP_FRAME_NAME_BYTES];
  ljp_frame_name(s->p, frame, LJP_NAME_LINES, name, sizeof name);
  uint64_t key = ljp_hash_mix(strlen(name), 1);
  for (const char *c = name; *c; c++)
    key = ljp_hash_mix(key, (unsigned char)*c);
  uint32_t id = ljp_heap_ids_add(&s->ids, key);
  if (id == LJP_HEAP_NO_ID ||
      !ljp_array_reserve(&s->list, id, &s->room, sizeof *s->list))
    return LJP_HEAP_NO_ID;
  if (id == s->count)
    s->list[s->count++] = (struct ljp_heap_site){.frame = frame};
  return id;
}

/* The innermost line of Lua of a stack: what builtins and C functions allocate
** counts for the line that called them. Without Lua: the innermost frame. */
static uint32_t sites_frame(const struct ljp_profile *p, uint32_t node)
{
  for (uint32_t at = node; at; at = p->nodes[at].parent) {
    unsigned kind = p->frames[p->nodes[at].frame].kind;
    if (kind == LJP_FRAME_LUA || kind == LJP_FRAME_LUA_INLINED)
      return p->nodes[at].frame;
  }
  return p->nodes[node].frame;
}

static enum ljp_status sites_find(struct ljp_heap_sites *s,
                                  const struct ljp_graph *g)
{
  const struct ljp_profile *p = s->p;
  uint32_t *of_frame = malloc(p->frame_count * sizeof *of_frame);
  enum ljp_status status = of_frame ? LJP_OK : LJP_ERR_MEM;
  if (of_frame)
    memset(of_frame, 0xff, p->frame_count * sizeof *of_frame);
  for (uint32_t i = 1; !status && i < g->count; i++) {
    const struct ljp_birth *b = ljp_births_find(&p->births, g->address[i]);
    if (!b)
      continue;
    uint32_t frame = sites_frame(p, p->rows[b->row].node);
    if (of_frame[frame] == LJP_HEAP_NO_ID)
      of_frame[frame] = sites_add(s, frame);
    uint32_t site = s->of[i] = of_frame[frame];
    if (site == LJP_HEAP_NO_ID) {
      status = LJP_ERR_MEM;
    } else if (b->weight && b->size) {
      s->sampled = true;
      s->list[site].bytes += (double)b->weight;
      s->list[site].objects += (double)b->weight / (double)b->size;
    }
  }
  free(of_frame);
  return status;
}

enum ljp_status ljp_heap_sites_init(struct ljp_heap_sites *s,
                                    const struct ljp_graph *g, const char *file,
                                    char error[LJP_READER_ERROR_BYTES + 64])
{
  const struct ljp_profile_options options = {.no_symbols = true,
                                              .no_samples = true,
                                              .lua_view = true,
                                              .births = g->head.snapshot};
  *s = (struct ljp_heap_sites){.p = NULL};
  if (!g->in_session)
    return LJP_OK;
  enum ljp_status status = ljp_profile_load(file, &options, &s->p, error);
  if (status)
    return status;
  s->of = malloc(g->count * sizeof *s->of);
  status = s->of ? LJP_OK : LJP_ERR_MEM;
  if (s->of) {
    memset(s->of, 0xff, g->count * sizeof *s->of);
    s->sampled = s->p->sampled_memory;
    status = sites_find(s, g);
  }
  if (status) {
    snprintf(error, LJP_READER_ERROR_BYTES, "%s", ljp_status_text(status));
    ljp_heap_sites_fini(s);
  }
  return status;
}

void ljp_heap_sites_fini(struct ljp_heap_sites *s)
{
  if (s->p)
    ljp_profile_free(s->p);
  free(s->of);
  free(s->list);
  ljp_heap_ids_fini(&s->ids);
  *s = (struct ljp_heap_sites){.p = NULL};
}

/* -- The view -------------------------------------------------------------- */

static int sites_by_bytes(const void *a, const void *b)
{
  const struct ljp_heap_site *x = a, *y = b;
  if (x->bytes != y->bytes)
    return x->bytes < y->bytes ? 1 : -1;
  if (x->sums.own != y->sums.own)
    return x->sums.own < y->sums.own ? 1 : -1;
  return x->frame < y->frame ? -1 : x->frame > y->frame;
}

static void sites_show_rows(const struct ljp_heap_view *v,
                            struct ljp_heap_show *show)
{
  const struct ljp_heap_sites *s = &v->sites;
  for (uint32_t i = 0; i < s->count && i < v->top; i++) {
    const struct ljp_heap_site *site = &s->list[i];
    struct ljp_heap_text text = {.len = 0};
    ljp_heap_site_text(s, i, &text);
    ljp_heap_row(show);
    ljp_heap_cell_bytes(show, "retained", site->sums.retained);
    if (s->sampled) {
      ljp_heap_cell_bytes(show, "estimated_bytes", ljp_whole(site->bytes));
      ljp_heap_cell_count(show, "estimated_objects",
                          ljp_whole(site->objects + 0.5));
      ljp_heap_show_number(show, "own", site->sums.own);
    } else {
      ljp_heap_cell_bytes(show, "own", site->sums.own);
    }
    ljp_heap_cell_count(show, "objects", site->sums.objects);
    ljp_heap_cell_text(show, "site", &text);
    ljp_heap_row_end(show);
  }
}

/* What has no site. */
static void sites_show_others(const struct ljp_heap_view *v,
                              struct ljp_heap_show *show)
{
  struct ljp_heap_text bytes = {.len = 0};
  uint64_t objects = v->totals.all_objects, own = v->totals.all_bytes;
  for (uint32_t i = 0; i < v->sites.count; i++) {
    objects -= v->sites.list[i].sums.objects;
    own -= v->sites.list[i].sums.own;
  }
  ljp_heap_amount(&bytes, own);
  ljp_heap_show_number(show, "without_site_objects", objects);
  ljp_heap_show_number(show, "without_site_bytes", own);
  ljp_heap_show_bool(show, "sampled", v->sites.sampled);
  if (v->sites.sampled)
    ljp_heap_show_line(show,
                       "The session sampled: bytes and objects of a site are "
                       "estimates; retained and samples are those of the "
                       "sampled objects. %" PRIu64 " objects were not sampled.",
                       objects);
  else
    ljp_heap_show_line(show,
                       "%" PRIu64
                       " objects, %s, have no site: they are parts of the VM, "
                       "or older than the session",
                       objects, bytes.data);
}

enum ljp_status ljp_heap_show_sites(struct ljp_heap_view *v,
                                    struct ljp_heap_show *show)
{
  struct ljp_heap_tree tree;
  struct ljp_heap_sites *s = &v->sites;
  enum ljp_status status = ljp_heap_tree_init(&tree, &v->graph);
  if (status)
    return status;
  if (s->count) {
    ljp_heap_tree_add_up(&tree, &v->graph, s->of, s->list, sizeof *s->list);
    qsort(s->list, s->count, sizeof *s->list, sites_by_bytes);
  }
  ljp_heap_tree_fini(&tree);
  ljp_heap_show_totals(v, show);
  sites_show_others(v, show);
  ljp_heap_table(show, "sites",
                 s->sampled ? "  retained      bytes    objects    samples  "
                              "allocated by"
                            : "  retained        own    objects  allocated by");
  sites_show_rows(v, show);
  ljp_heap_table_end(show);
  return LJP_OK;
}
