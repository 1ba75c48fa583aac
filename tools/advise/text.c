/*
** Prints findings for people, and finds the names that all outputs use.
*/
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "parsers/profile/frame_name.h"
#include "tools/advise/advise.h"

void ljp_advise_function(const struct advise_facts *a, uint32_t function,
                         char name[ADVISE_NAME_BYTES])
{
  const struct ljp_profile *p = a->p;
  name[0] = '\0';
  if (function)
    ljp_frame_function_text(p, p->functions[function].frame, name,
                            ADVISE_NAME_BYTES);
}

struct ljp_str ljp_advise_file(const struct advise_facts *a,
                               const struct advise_finding *f, uint32_t *line)
{
  const struct ljp_profile_frame *frame = &a->p->frames[f->frame];
  *line = frame->line ? frame->line : frame->first_line;
  return ljp_profile_str(a->p, frame->file);
}

static void text_bytes(struct ljp_print *out, double bytes)
{
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  unsigned unit = 0;
  for (; bytes >= 1024 && unit < 4; unit++)
    bytes /= 1024;
  ljp_print_format(out, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

static void text_place(const struct advise_output *o,
                       const struct advise_finding *f)
{
  char name[ADVISE_NAME_BYTES];
  uint32_t line;
  struct ljp_str file = ljp_advise_file(o->facts, f, &line);
  ljp_advise_function(o->facts, f->function, name);
  ljp_print_safe(o->out, ljp_str(name, strlen(name)));
  ljp_print_str(o->out, " ");
  ljp_print_safe(o->out, file);
  if (line)
    ljp_print_format(o->out, ":%" PRIu32, line);
}

static void text_evidence(const struct advise_output *o,
                          const struct advise_finding *f)
{
  struct ljp_print *out = o->out;
  char name[ADVISE_NAME_BYTES];
  ljp_print_str(out, "\n   evidence: ");
  if (f->memory) {
    text_bytes(out, (double)f->bytes);
    ljp_print_format(out, " in %" PRIu64 " objects: ", f->objects);
  } else {
    ljp_print_format(out, "%" PRIu64 " samples (%.1f %%): ", f->evidence.count,
                     f->evidence_percent);
  }
  ljp_print_safe(out, ljp_str(f->text, strlen(f->text)));
  if (f->objects && !f->memory)
    ljp_print_format(out, "; %" PRIu64 " objects", f->objects);
  if (f->callee) {
    ljp_advise_function(o->facts, f->callee, name);
    ljp_print_str(out, "; it calls ");
    ljp_print_safe(out, ljp_str(name, strlen(name)));
  }
}

static void text_finding(const struct advise_output *o, uint32_t number,
                         const struct advise_finding *f)
{
  struct ljp_print *out = o->out;
  ljp_print_format(out, "\n%" PRIu32 ". ", number);
  text_place(o, f);
  ljp_print_format(out, ": %s\n   gain: at most %.1f %% +- %.1f %% of the %s",
                   ljp_advise_title(f->kind), f->percent, f->error,
                   ljp_advise_unit(o->facts, f));
  text_evidence(o, f);
  ljp_print_format(out, "\n   change: %s\n   guide: %s#%s\n",
                   ljp_advise_remedy(f), LJP_ADVISE_PAGE, ljp_advise_anchor(f));
}

static void text_nothing(const struct advise_output *o)
{
  const struct advise_value *all = &o->facts->all;
  ljp_print_str(o->out, "Found nothing worth changing");
  if (all->count)
    ljp_print_format(o->out, " in %" PRIu64 " sample%s", all->count,
                     all->count == 1 ? "" : "s");
  ljp_print_str(o->out, ".\n");
  if (!all->looks)
    ljp_print_str(o->out, "The file has no samples of time: only memory that "
                          "grows was looked for.\n");
  else if (all->looks < LJP_ADVISE_SAMPLES)
    ljp_print_format(o->out,
                     "Fewer than %d samples of time are not judged: record "
                     "for longer, or with a shorter --interval.\n",
                     LJP_ADVISE_SAMPLES);
}

void ljp_advise_text(const struct advise_output *o)
{
  const struct ljp_profile *p = o->facts->p;
  uint32_t count = o->findings->count;
  const char *notice;
  for (uint32_t i = 0; (notice = ljp_profile_notice(p, i)); i++) {
    ljp_print_str(o->out, "! ");
    ljp_print_safe(o->out, ljp_str(notice, strlen(notice)));
    ljp_print_str(o->out, "\n");
  }
  if (!count)
    text_nothing(o);
  else
    ljp_print_format(o->out,
                     "%" PRIu32 " finding%s. A gain is an upper bound with its "
                     "sampling error; gains overlap.\n",
                     count, count == 1 ? "" : "s");
  for (uint32_t i = 0; i < count; i++)
    text_finding(o, i + 1, &o->findings->list[i]);
  if ((notice = ljp_advise_memory_note(o->facts, o->findings)))
    ljp_print_format(o->out, "%s%s\n", count ? "\n" : "", notice);
}
