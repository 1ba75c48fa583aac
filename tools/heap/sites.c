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
#include "parsers/profile/labels.h"
#include "tools/heap/view.h"

void ljp_heap_site_text(const struct ljp_heap_sites *sites, uint32_t site,
                        struct ljp_heap_text *t)
{
  char name[LJP_FRAME_NAME_BYTES];
  const uint32_t number = sites->list[site].name;
  struct ljp_str value = ljp_profile_str(sites->p, number);
  if (sites->label_key) {
    if (!value.len)
      value = ljp_str("(none)", 6);
  } else {
    ljp_frame_name(sites->p, number, LJP_NAME_LINES, name, sizeof name);
    value = ljp_str(name, strlen(name));
  }
  ljp_heap_bytes(t, value, 300);
}

/* -- Sites of objects ------------------------------------------------------ */

/* Frames with the same name are one site. */
static uint64_t sites_frame_key(const struct ljp_profile *p, uint32_t frame)
{
  char name[LJP_FRAME_NAME_BYTES];
  ljp_frame_name(p, frame, LJP_NAME_LINES, name, sizeof name);
  uint64_t key = ljp_hash_mix(strlen(name), 1);
  for (const char *c = name; *c; c++)
    key = ljp_hash_mix(key, (unsigned char)*c);
  return key;
}

static uint32_t sites_add(struct ljp_heap_sites *s, uint32_t name)
{
  uint64_t key = s->label_key ? name : sites_frame_key(s->p, name);
  uint32_t id = ljp_heap_ids_add(&s->ids, key);
  if (id == LJP_HEAP_NO_ID ||
      !ljp_array_reserve(&s->list, id, &s->room, sizeof *s->list))
    return LJP_HEAP_NO_ID;
  if (id == s->count)
    s->list[s->count++] = (struct ljp_heap_site){.name = name};
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

/* NULL: no memory. */
static uint32_t *sites_numbers(uint64_t count)
{
  uint32_t *list = malloc(count * sizeof *list);
  if (list)
    memset(list, 0xff, count * sizeof *list);
  return list;
}

/* A frame, or the string of a label's value: its number in the profile. */
static uint32_t sites_name(const struct ljp_heap_sites *s,
                           const struct ljp_profile_row *row, uint32_t key)
{
  return s->label_key
             ? ljp_labels_value(s->p, s->p->contexts[row->context].labels, key)
             : sites_frame(s->p, row->node);
}

static enum ljp_status sites_find(struct ljp_heap_sites *s,
                                  const struct ljp_graph *g)
{
  const struct ljp_profile *p = s->p;
  const char *label = s->label_key;
  const uint32_t key =
      label ? ljp_labels_key(p, ljp_str(label, strlen(label))) : 0;
  uint32_t *of_name =
      sites_numbers((label ? p->strings.count : p->frame_count) + UINT64_C(1));
  enum ljp_status status = of_name ? LJP_OK : LJP_ERR_MEM;
  for (uint32_t i = 1; !status && i < g->count; i++) {
    const struct ljp_birth *b = ljp_births_find(&p->births, g->address[i]);
    if (!b)
      continue;
    uint32_t name = sites_name(s, &p->rows[b->row], key);
    if (of_name[name] == LJP_HEAP_NO_ID)
      of_name[name] = sites_add(s, name);
    uint32_t site = s->of[i] = of_name[name];
    if (site == LJP_HEAP_NO_ID) {
      status = LJP_ERR_MEM;
    } else if (b->weight && b->size) {
      s->sampled = true;
      s->list[site].bytes += (double)b->weight;
      s->list[site].objects += (double)b->weight / (double)b->size;
    }
  }
  free(of_name);
  return status;
}

enum ljp_status ljp_heap_sites_init(struct ljp_heap_sites *s,
                                    const struct ljp_graph *g, const char *file,
                                    const struct ljp_profile_options *wanted,
                                    char error[LJP_READER_ERROR_BYTES + 64])
{
  const struct ljp_profile_options options = {.no_symbols = true,
                                              .no_samples = true,
                                              .lua_view = true,
                                              .labels = wanted->labels,
                                              .label_key = wanted->label_key,
                                              .births = g->head.snapshot};
  *s = (struct ljp_heap_sites){.labelled = wanted->labels.count > 0,
                               .label_key = wanted->label_key};
  if (!g->in_session)
    return LJP_OK;
  enum ljp_status status = ljp_profile_load(file, &options, &s->p, error);
  if (status)
    return status;
  s->of = sites_numbers(g->count);
  s->sampled = s->p->sampled_memory;
  status = s->of ? sites_find(s, g) : LJP_ERR_MEM;
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

void ljp_heap_sites_table(const struct ljp_heap_sites *s,
                          struct ljp_heap_show *show, const char *heads)
{
  struct ljp_heap_text line = {.len = 0};
  if (s->label_key)
    ljp_heap_format(&line, "%s  label:%s", heads, s->label_key);
  else
    ljp_heap_format(&line, "%s  allocated by", heads);
  ljp_heap_table(show, s->label_key ? "labels" : "sites", line.data);
}

void ljp_heap_sites_cell(const struct ljp_heap_sites *s, uint32_t site,
                         struct ljp_heap_show *show)
{
  struct ljp_heap_text text = {.len = 0};
  ljp_heap_site_text(s, site, &text);
  ljp_heap_cell_text(show, s->label_key ? "value" : "site", &text);
}

static int sites_by_bytes(const void *a, const void *b)
{
  const struct ljp_heap_site *x = a, *y = b;
  if (x->bytes != y->bytes)
    return x->bytes < y->bytes ? 1 : -1;
  if (x->sums.own != y->sums.own)
    return x->sums.own < y->sums.own ? 1 : -1;
  return x->name < y->name ? -1 : x->name > y->name;
}

static void sites_show_rows(const struct ljp_heap_view *v,
                            struct ljp_heap_show *show)
{
  const struct ljp_heap_sites *s = &v->sites;
  for (uint32_t i = 0; i < s->count && i < v->top; i++) {
    const struct ljp_heap_site *site = &s->list[i];
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
    ljp_heap_sites_cell(s, i, show);
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
    ljp_heap_show_line(
        show,
        "The session sampled: bytes and objects of a site are "
        "estimates; retained and samples are those of the "
        "sampled objects. %" PRIu64 " objects were not sampled%s.",
        objects, v->sites.labelled ? ", or have other labels" : "");
  else
    ljp_heap_show_line(show,
                       "%" PRIu64
                       " objects, %s, have no site: they are parts of the VM, "
                       "%solder than the session%s",
                       objects, bytes.data, v->sites.labelled ? "" : "or ",
                       v->sites.labelled ? ", or have other labels" : "");
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
  ljp_heap_sites_table(s, show,
                       s->sampled
                           ? "  retained      bytes    objects    samples"
                           : "  retained        own    objects");
  sites_show_rows(v, show);
  ljp_heap_table_end(show);
  return LJP_OK;
}
