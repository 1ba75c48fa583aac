/*
** Shows budgets with their verdicts: lines of text, JSON (doc/reference/json.md)
** or JUnit's XML, which CI servers read.
*/
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/expect/expect.h"
#include "tools/shared/show.h"

static struct ljp_str show_str(const char *text)
{
  return ljp_str(text, strlen(text));
}

static void show_notices(const struct ljp_expectations *all,
                         struct ljp_print *out)
{
  const char *text;
  for (uint32_t i = 0; all->p && (text = ljp_profile_notice(all->p, i)); i++) {
    ljp_print_str(out, "! ");
    ljp_print_safe(out, show_str(text));
    ljp_print_str(out, "\n");
  }
}

void ljp_expect_text(const struct ljp_expectations *all, struct ljp_print *out)
{
  show_notices(all, out);
  for (unsigned i = 0; i < all->count; i++) {
    const struct ljp_expectation *e = &all->list[i];
    ljp_print_format(out, "%-8s  ", ljp_verdict_text(e->verdict));
    ljp_print_safe(out, show_str(e->budget.text));
    ljp_print_str(out, ": ");
    ljp_print_safe(out, show_str(e->text));
    ljp_print_str(out, "\n");
  }
}

static void show_json_side(struct ljp_print *out, const char *name,
                           const struct ljp_figure_value *v)
{
  ljp_print_format(out, ",\"%s\":%.17g,\"%s_low\":%.17g,\"%s_high\":%.17g",
                   name, v->value, name, v->low, name, v->high);
}

void ljp_expect_json(const struct ljp_expectations *all, struct ljp_print *out)
{
  static const char *const units[] = {
      [LJP_UNIT_NONE] = "",       [LJP_UNIT_PERCENT] = "%",
      [LJP_UNIT_TIME] = "ns",     [LJP_UNIT_BYTES] = "bytes",
      [LJP_UNIT_COUNT] = "count",
  };
  const char *text;
  ljp_print_str(out, "{\"file\":");
  ljp_print_json(out, show_str(all->file));
  ljp_print_format(out, ",\"verdict\":\"%s\",\"notices\":[",
                   ljp_verdict_text(ljp_expect_worst(all)));
  for (uint32_t i = 0; all->p && (text = ljp_profile_notice(all->p, i)); i++) {
    ljp_print_str(out, i ? "," : "");
    ljp_print_json(out, show_str(text));
  }
  ljp_print_str(out, "],\"budgets\":[");
  for (unsigned i = 0; i < all->count; i++) {
    const struct ljp_expectation *e = &all->list[i];
    ljp_print_str(out, i ? ",{\"budget\":" : "{\"budget\":");
    ljp_print_json(out, show_str(e->budget.text));
    ljp_print_format(out, ",\"verdict\":\"%s\"", ljp_verdict_text(e->verdict));
    if (e->verdict != LJP_VERDICT_UNKNOWN) {
      ljp_print_format(out, ",\"certain\":%s,\"unit\":\"%s\"",
                       e->certain ? "true" : "false",
                       units[e->budget.unit->kind]);
      show_json_side(out, "value", &e->value);
      show_json_side(out, "limit", &e->limit);
      ljp_print_format(out, ",\"samples\":%" PRIu64, e->value.samples);
    }
    ljp_print_str(out, ",\"text\":");
    ljp_print_json(out, show_str(e->text));
    ljp_print_str(out, "}");
  }
  ljp_print_str(out, "]}\n");
}

void ljp_expect_junit(const struct ljp_expectations *all, struct ljp_print *out)
{
  unsigned counts[3] = {0};
  for (unsigned i = 0; i < all->count; i++)
    counts[all->list[i].verdict]++;
  ljp_print_str(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                     "<testsuites>\n<testsuite name=\"");
  ljp_print_xml(out, show_str(all->file));
  ljp_print_format(out, "\" tests=\"%u\" failures=\"%u\" errors=\"%u\">\n",
                   all->count, counts[LJP_VERDICT_EXCEEDED],
                   counts[LJP_VERDICT_UNKNOWN]);
  for (unsigned i = 0; i < all->count; i++) {
    const struct ljp_expectation *e = &all->list[i];
    const char *element = e->verdict == LJP_VERDICT_EXCEEDED  ? "failure"
                          : e->verdict == LJP_VERDICT_UNKNOWN ? "error"
                                                              : "system-out";
    ljp_print_str(out, "<testcase classname=\"ljprof\" name=\"");
    ljp_print_xml(out, show_str(e->budget.text));
    ljp_print_format(out, "\"><%s", element);
    if (e->verdict == LJP_VERDICT_HOLDS) {
      ljp_print_str(out, ">");
      ljp_print_xml(out, show_str(e->text));
      ljp_print_str(out, "</system-out></testcase>\n");
    } else {
      ljp_print_str(out, " message=\"");
      ljp_print_xml(out, show_str(e->text));
      ljp_print_str(out, "\"/></testcase>\n");
    }
  }
  ljp_print_str(out, "</testsuite>\n</testsuites>\n");
}
