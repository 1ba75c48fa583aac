/*
** Requests for Pyroscope's older API, /ingest: a profile in pprof's format, and the
** rest in the URL: service{key=value,...}, and the times at which the profile begins
** and ends. Such a request has the query of the URL, a line's end, and the profile.
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/profile/profile.h"
#include "tools/push/push.h"

static bool ingest_is_plain(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

static void ingest_escape(FILE *f, const char *text)
{
  for (; *text; text++)
    if (ingest_is_plain(*text))
      putc(*text, f);
    else
      fprintf(f, "%%%02X", (unsigned char)*text);
}

/* A value of a label has no way to say ',' or '}'. */
static void ingest_value(FILE *f, const char *text)
{
  for (; *text; text++) {
    char c[2] = {*text == ',' || *text == '}' ? '_' : *text};
    ingest_escape(f, c);
  }
}

/* The name of the application; other characters are refused there. */
static bool ingest_service(FILE *f, const char *service)
{
  bool same = true;
  for (const char *c = service; *c; c++) {
    bool fit = ingest_is_plain(*c) || *c == '/';
    const char text[2] = {fit ? *c : '_'};
    ingest_escape(f, text);
    same &= fit;
  }
  return same;
}

static void ingest_query(FILE *f, const struct ljp_push_labels *labels,
                         const char *service, const struct ljp_profile *p)
{
  const uint64_t second = 1000000000;
  const uint64_t from = p->origin_wall_ns / second;
  const uint64_t until = (p->origin_wall_ns + p->end_ns) / second;
  const char *between = "";
  fputs("name=", f);
  bool same = ingest_service(f, service);
  ingest_escape(f, "{");
  if (!same) {
    fputs("service_name%3D", f);
    ingest_value(f, service);
    between = ",";
  }
  for (unsigned i = 0; i < labels->count; i++) {
    ingest_escape(f, between);
    ingest_escape(f, labels->list[i].key);
    ingest_escape(f, "=");
    ingest_value(f, labels->list[i].value);
    between = ",";
  }
  ingest_escape(f, "}");
  fprintf(f, "&from=%" PRIu64 "&until=%" PRIu64 "&format=pprof", from,
          until > from ? until : from + 1);
}

enum ljp_status ljp_push_ingest(const struct ljp_push_labels *labels,
                                const char *service,
                                const struct ljp_profile *p,
                                const uint8_t *profile, size_t len,
                                struct ljp_request *r)
{
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  if (f) {
    ingest_query(f, labels, service, p);
    putc('\n', f);
    fwrite(profile, 1, len, f);
  }
  if (!f || fclose(f)) {
    free(text);
    return LJP_ERR_MEM;
  }
  r->body = (uint8_t *)text;
  r->len = size;
  return LJP_OK;
}
