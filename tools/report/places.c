/*
** Places: the lines of Lua that count most, which stand above the rows of a
** report by function. A row says which function it is; a place also says where
** in it, and for memory what no row of a report on time can show. What a
** builtin, a C function or the collector does counts for the line that called
** it.
*/
#include <inttypes.h>
#include <stdlib.h>

#include "parsers/base/array.h"
#include "parsers/base/index.h"
#include "parsers/base/pages.h"
#include "parsers/profile/frame_name.h"
#include "tools/report/groups.h"

/* The places of one measure: at most SHOWN, each with at least LEAST of all. */
enum { SHOWN = 3, SHOWN_OF_MORE = 2, LEAST_PERCENT = 5 };

struct ljp_place {
  enum ljp_measure measure;
  uint32_t frame;         /* Of this function at this line. */
  struct ljp_value value; /* Self. */
};

struct ljp_places {
  struct ljp_value totals[LJP_MEASURES];
  struct ljp_place list[LJP_MEASURES * SHOWN];
  uint32_t count;
};

/* Numbers the places: by frame its place + 1, 0: it has no line of Lua. */
struct places_keys {
  struct ljp_index index;
  uint32_t *frames; /* By place: its first frame. */
  uint32_t count, room;
};

static bool places_number(const struct ljp_profile *p, struct places_keys *k,
                          uint32_t frame, uint32_t *place)
{
  const struct ljp_profile_frame *f = &p->frames[frame];
  *place = 0;
  if (!ljp_group_is_lua(f->kind) || !f->file || !f->line)
    return true;
  if (!ljp_index_reserve(&k->index) ||
      !ljp_array_reserve(&k->frames, k->count, &k->room, sizeof *k->frames))
    return false;
  uint32_t hash =
      ljp_hash_finish(ljp_hash_mix((uint64_t)f->function << 32 | f->line, 3));
  struct ljp_index_slot *slot = ljp_index_at(&k->index, hash);
  for (; slot->item; slot = ljp_index_next(&k->index, slot)) {
    const struct ljp_profile_frame *same =
        &p->frames[k->frames[slot->item - 1]];
    if (slot->hash == hash && same->function == f->function &&
        same->line == f->line) {
      *place = slot->item;
      return true;
    }
  }
  ljp_index_put(&k->index, slot, hash, k->count);
  k->frames[k->count++] = frame;
  *place = k->count;
  return true;
}

/* Finds the place of each node: that of its innermost Lua frame. The profiler's
** own work has none. */
static uint32_t *places_of_nodes(const struct ljp_profile *p,
                                 struct places_keys *k)
{
  uint32_t *of_frame = malloc(((size_t)p->frame_count + 1) * sizeof *of_frame);
  uint32_t *of_node = ljp_pages_items(p->node_count, sizeof *of_node);
  bool ok = of_frame && of_node;
  for (uint32_t i = 0; ok && i < p->frame_count; i++)
    ok = places_number(p, k, i, &of_frame[i]);
  for (uint32_t i = 1; ok && i < p->node_count; i++) {
    uint32_t place = of_frame[p->nodes[i].frame];
    bool ours = p->frames[p->nodes[i].frame].kind == LJP_FRAME_PROFILER;
    of_node[i] = place || ours ? place : of_node[p->nodes[i].parent];
  }
  free(of_frame);
  if (ok)
    return of_node;
  free(of_node);
  return NULL;
}

static bool places_before(enum ljp_measure measure, const struct ljp_value *a,
                          const struct ljp_value *b)
{
  bool grows = measure == LJP_MEASURE_LEAKS;
  if (grows && ljp_report_grows(a) != ljp_report_grows(b))
    return ljp_report_grows(a);
  return a->weight > b->weight;
}

/* Adds the places that count most for a measure. values: by place + 1, zeros;
** they are left as zeros. */
static void places_add(const struct ljp_report *r, enum ljp_measure measure,
                       const uint32_t *of_node, const struct places_keys *k,
                       struct ljp_value *values, struct ljp_places *places)
{
  struct ljp_value *total = &places->totals[measure];
  uint32_t most = measure == r->select.measure ? SHOWN : SHOWN_OF_MORE;
  struct ljp_place *first = &places->list[places->count], *last = first;
  for (uint32_t i = 0; i < r->p->row_count; i++) {
    const struct ljp_profile_row *row = &r->p->rows[i];
    if (!r->select.in[i])
      continue;
    struct ljp_value v = ljp_select_row(&r->select, measure, row);
    ljp_value_add(&values[of_node[row->node]], &v);
    ljp_value_add(total, &v);
  }
  for (uint32_t i = 1; i <= k->count; i++) {
    struct ljp_place place = {measure, k->frames[i - 1], values[i]};
    if ((double)place.value.weight * 100 <
            (double)total->weight * LEAST_PERCENT ||
        !place.value.weight ||
        (measure == LJP_MEASURE_LEAKS && !ljp_report_grows(&place.value)))
      continue;
    struct ljp_place *at = last;
    for (; at > first && places_before(measure, &place.value, &at[-1].value);
         at--)
      if (at < first + most)
        *at = at[-1];
    if (at < first + most)
      *at = place;
    if (last < first + most)
      last++;
  }
  places->count += (uint32_t)(last - first);
  for (uint32_t i = 0; i <= k->count; i++)
    values[i] = (struct ljp_value){0};
}

/* Whether places of this measure are shown: of the report's own and, if nobody
** has chosen that, of what else the file holds. */
static bool places_wanted(const struct ljp_report *r, enum ljp_measure measure)
{
  if (measure == r->select.measure)
    return measure != LJP_MEASURE_LEAKS;
  if (r->chosen || !r->p->has_memory)
    return false;
  return measure == LJP_MEASURE_ALLOC || measure == LJP_MEASURE_LIVE ||
         (measure == LJP_MEASURE_LEAKS && !r->p->recorded_by);
}

struct ljp_places *ljp_report_places(const struct ljp_report *r)
{
  struct places_keys k = {0};
  struct ljp_places *places = calloc(1, sizeof *places);
  uint32_t *of_node = places ? places_of_nodes(r->p, &k) : NULL;
  struct ljp_value *values =
      of_node ? calloc((size_t)k.count + 1, sizeof *values) : NULL;
  for (unsigned i = 0; values && i < LJP_MEASURES; i++)
    if (places_wanted(r, (enum ljp_measure)i))
      places_add(r, (enum ljp_measure)i, of_node, &k, values, places);
  if (!values) {
    free(places);
    places = NULL;
  }
  free(values);
  free(of_node);
  free(k.frames);
  ljp_index_fini(&k.index);
  return places;
}

static const char *places_text(enum ljp_measure measure)
{
  switch (measure) {
  case LJP_MEASURE_CPU:
    return "most CPU time";
  case LJP_MEASURE_WALL:
    return "most wall time";
  case LJP_MEASURE_GC_COST:
    return "most to collect";
  case LJP_MEASURE_ALLOC:
    return "most allocated";
  case LJP_MEASURE_LIVE:
    return "most live";
  case LJP_MEASURE_LEAKS:
    return "kept growing";
  case LJP_MEASURE_PEAK:
    return "most at the peak";
  case LJP_MEASURE_CHURN:
    return "most temporary";
  }
  return "";
}

/* The report of one place's measure, for the functions that print values. */
static struct ljp_report places_report(const struct ljp_report *r,
                                       const struct ljp_place *place)
{
  struct ljp_report of = *r;
  of.select.measure = place->measure;
  of.select.total = r->places->totals[place->measure];
  return of;
}

void ljp_report_text_places(const struct ljp_report *r)
{
  for (uint32_t i = 0; r->places && i < r->places->count; i++) {
    const struct ljp_place *place = &r->places->list[i];
    struct ljp_report of = places_report(r, place);
    char amount[24], name[4096];
    ljp_amount(&of, place->value.weight, amount);
    ljp_frame_name(r->p, place->frame, LJP_NAME_LINES, name, sizeof name);
    ljp_print_format(r->out, "%-16s %10s %6.2f%%  ",
                     i && place[-1].measure == place->measure
                         ? ""
                         : places_text(place->measure),
                     amount, ljp_percent(&of, &place->value));
    ljp_print_safe(r->out, ljp_str(name, strlen(name)));
    ljp_print_str(r->out, "\n");
  }
}

void ljp_report_json_places(const struct ljp_report *r)
{
  if (!r->places)
    return;
  ljp_print_str(r->out, ",\"places\":[");
  for (uint32_t i = 0; i < r->places->count; i++) {
    const struct ljp_place *place = &r->places->list[i];
    const struct ljp_profile_frame *f = &r->p->frames[place->frame];
    struct ljp_report of = places_report(r, place);
    char name[4096];
    ljp_print_format(r->out,
                     "%s{\"measure\":\"%s\",\"name\":", i ? ",\n" : "\n",
                     ljp_measure_option(place->measure));
    ljp_frame_name(r->p, place->frame, LJP_NAME_LINES, name, sizeof name);
    ljp_print_json(r->out, ljp_str(name, strlen(name)));
    ljp_print_str(r->out, ",");
    ljp_json_value(&of, "line", &place->value);
    ljp_print_str(r->out, ",\"file\":");
    ljp_print_json(r->out, ljp_profile_str(r->p, f->file));
    ljp_print_format(r->out, ",\"line\":%" PRIu32 "}", f->line);
  }
  ljp_print_str(r->out, "]");
}
