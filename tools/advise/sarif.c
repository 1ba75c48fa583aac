/*
** Prints findings as SARIF 2.1.0 (OASIS), which editors and CI systems read: a
** rule for each kind of finding, a result for each finding.
*/
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/advise/advise.h"

static void sarif_rules(struct ljp_print *out)
{
  for (unsigned i = 0; i < LJP_ADVISE_KINDS; i++) {
    const struct advise_finding f = {.kind = (enum ljp_advise_kind)i};
    const char *title = ljp_advise_title(f.kind);
    ljp_print_format(out, "%s\n{\"id\":\"%s\",\"shortDescription\":{\"text\":",
                     i ? "," : "", ljp_advise_name(f.kind));
    ljp_print_json(out, ljp_str(title, strlen(title)));
    ljp_print_format(out, "},\"help\":{\"text\":\"%s#%s\"}}", LJP_ADVISE_PAGE,
                     ljp_advise_anchor(&f));
  }
}

/* A path as a URI: what RFC 3986 does not allow there becomes %NN. */
static void sarif_uri(struct ljp_print *out, struct ljp_str file)
{
  ljp_print_str(out, "\"");
  for (uint32_t i = 0; i < file.len; i++) {
    unsigned char c = (unsigned char)file.data[i];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
        (c >= '0' && c <= '9') || (c && strchr("/._-~", c)))
      ljp_print_raw(out, file.data + i, 1);
    else
      ljp_print_format(out, "%%%02X", c);
  }
  ljp_print_str(out, "\"");
}

static void sarif_result(const struct advise_output *o,
                         const struct advise_finding *f)
{
  struct ljp_print *out = o->out;
  char name[ADVISE_NAME_BYTES], text[ADVISE_NAME_BYTES + 1024];
  uint32_t line;
  struct ljp_str file = ljp_advise_file(o->facts, f, &line);
  ljp_advise_function(o->facts, f->function, name);
  int n = snprintf(text, sizeof text,
                   "%s: %s. At most %.1f %% +- %.1f %% of the %s. %s (%s#%s)",
                   name, ljp_advise_title(f->kind), f->percent, f->error,
                   ljp_advise_unit(o->facts, f), ljp_advise_remedy(f),
                   LJP_ADVISE_PAGE, ljp_advise_anchor(f));
  ljp_print_format(out,
                   "{\"ruleId\":\"%s\",\"ruleIndex\":%d,\"level\":\"warning\","
                   "\"rank\":%.1f,\"message\":{\"text\":",
                   ljp_advise_name(f->kind), (int)f->kind,
                   f->percent < 100 ? f->percent : 100);
  ljp_print_json(out,
                 ljp_str(text, n < 0                     ? 0
                               : (size_t)n < sizeof text ? (size_t)n
                                                         : sizeof text - 1));
  ljp_print_str(out, "}");
  if (file.len) {
    ljp_print_str(out, ",\"locations\":[{\"physicalLocation\":{"
                       "\"artifactLocation\":{\"uri\":");
    sarif_uri(out, file);
    ljp_print_str(out, "}");
    if (line)
      ljp_print_format(out, ",\"region\":{\"startLine\":%" PRIu32 "}", line);
    ljp_print_str(out, "}}]");
  }
  ljp_print_str(out, "}");
}

void ljp_advise_sarif(const struct advise_output *o)
{
  ljp_print_str(o->out,
                "{\"$schema\":\"https://json.schemastore.org/"
                "sarif-2.1.0.json\",\"version\":\"2.1.0\",\"runs\":[{\n"
                "\"tool\":{\"driver\":{\"name\":\"ljprof\",\"rules\":[");
  sarif_rules(o->out);
  ljp_print_str(o->out, "]}},\n\"results\":[");
  for (uint32_t i = 0; i < o->findings->count; i++) {
    ljp_print_str(o->out, i ? ",\n" : "\n");
    sarif_result(o, &o->findings->list[i]);
  }
  ljp_print_str(o->out, "]}]}\n");
}
