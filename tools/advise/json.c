/*
** Prints findings as JSON; doc/reference/json.md has the keys.
*/
#include <inttypes.h>
#include <string.h>

#include "tools/advise/advise.h"

static void json_text(struct ljp_print *out, const char *key, const char *text)
{
  ljp_print_format(out, "\"%s\":", key);
  ljp_print_json(out, ljp_str(text, strlen(text)));
}

static void json_gain(const struct advise_output *o,
                      const struct advise_finding *f)
{
  ljp_print_format(o->out,
                   ",\"gain\":{\"of\":\"%s\",\"percent\":%.4f,"
                   "\"error_percent\":%.4f",
                   f->memory        ? "live"
                   : o->facts->wall ? "wall"
                                    : "cpu",
                   f->percent, f->error);
  if (f->memory)
    ljp_print_format(o->out,
                     ",\"bytes\":%" PRIu64
                     ",\"bytes_low\":%.0f,\"bytes_high\":%.0f}",
                     f->bound_bytes, f->bytes_low, f->bytes_high);
  else if (o->facts->p->recorded_by)
    ljp_print_format(o->out, ",\"samples\":%" PRIu64 "}", f->bound.count);
  else
    ljp_print_format(o->out, ",\"samples\":%" PRIu64 ",\"ns\":%" PRIu64 "}",
                     f->bound.count, f->bound.weight);
}

static void json_evidence(const struct advise_output *o,
                          const struct advise_finding *f)
{
  char name[ADVISE_NAME_BYTES];
  ljp_print_format(o->out, ",\"evidence\":{\"percent\":%.4f",
                   f->evidence_percent);
  if (f->memory)
    ljp_print_format(o->out, ",\"bytes\":%" PRIu64, f->bytes);
  else
    ljp_print_format(o->out, ",\"samples\":%" PRIu64, f->evidence.count);
  if (f->objects)
    ljp_print_format(o->out, ",\"objects\":%" PRIu64, f->objects);
  if (f->count)
    ljp_print_format(o->out, ",\"count\":%" PRIu64, f->count);
  if (f->callee) {
    ljp_advise_function(o->facts, f->callee, name);
    ljp_print_str(o->out, ",");
    json_text(o->out, "calls", name);
  }
  ljp_print_str(o->out, ",");
  json_text(o->out, "text", f->text);
  ljp_print_str(o->out, "}");
}

static void json_finding(const struct advise_output *o,
                         const struct advise_finding *f)
{
  struct ljp_print *out = o->out;
  char name[ADVISE_NAME_BYTES];
  uint32_t line;
  struct ljp_str file = ljp_advise_file(o->facts, f, &line);
  ljp_advise_function(o->facts, f->function, name);
  ljp_print_str(out, "{");
  json_text(out, "kind", ljp_advise_name(f->kind));
  ljp_print_str(out, ",");
  json_text(out, "title", ljp_advise_title(f->kind));
  ljp_print_str(out, ",");
  json_text(out, "function", name);
  ljp_print_str(out, ",\"file\":");
  ljp_print_json(out, file);
  ljp_print_format(out, ",\"line\":%" PRIu32, line);
  json_gain(o, f);
  json_evidence(o, f);
  ljp_print_str(out, ",");
  json_text(out, "change", ljp_advise_remedy(f));
  ljp_print_format(out, ",\"guide\":\"%s#%s\"}", LJP_ADVISE_PAGE,
                   ljp_advise_anchor(f));
}

void ljp_advise_json(const struct advise_output *o)
{
  const char *notice;
  ljp_print_str(o->out, "{");
  json_text(o->out, "file", o->path);
  ljp_print_format(o->out, ",\"samples\":%" PRIu64 ",\"notices\":[",
                   o->facts->all.count);
  uint32_t i = 0;
  for (; (notice = ljp_profile_notice(o->facts->p, i)); i++) {
    ljp_print_str(o->out, i ? "," : "");
    ljp_print_json(o->out, ljp_str(notice, strlen(notice)));
  }
  if ((notice = ljp_advise_memory_note(o->facts, o->findings))) {
    ljp_print_str(o->out, i ? "," : "");
    ljp_print_json(o->out, ljp_str(notice, strlen(notice)));
  }
  ljp_print_str(o->out, "],\n\"findings\":[");
  for (i = 0; i < o->findings->count; i++) {
    ljp_print_str(o->out, i ? ",\n" : "\n");
    json_finding(o, &o->findings->list[i]);
  }
  ljp_print_str(o->out, "]}\n");
}
