/*
** See show.h. Names are escaped here: they come from the profiled program.
*/
#include "tools/heap/show.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void show_key(struct ljp_heap_show *s, const char *key)
{
  ljp_print_format(s->out, "%s\"%s\":", s->comma ? "," : "", key);
  s->comma = true;
}

void ljp_heap_show_begin(struct ljp_heap_show *s, struct ljp_print *out,
                         bool json)
{
  *s = (struct ljp_heap_show){.out = out, .json = json};
  if (json)
    ljp_print_str(out, "{");
}

void ljp_heap_show_end(struct ljp_heap_show *s)
{
  if (s->json)
    ljp_print_str(s->out, "}\n");
}

/* -- Of the JSON object ---------------------------------------------------- */

void ljp_heap_show_number(struct ljp_heap_show *s, const char *key,
                          uint64_t number)
{
  if (!s->json)
    return;
  show_key(s, key);
  ljp_print_dec(s->out, number);
}

void ljp_heap_show_signed(struct ljp_heap_show *s, const char *key,
                          int64_t number)
{
  if (!s->json)
    return;
  show_key(s, key);
  ljp_print_format(s->out, "%" PRId64, number);
}

void ljp_heap_show_bool(struct ljp_heap_show *s, const char *key, bool value)
{
  if (!s->json)
    return;
  show_key(s, key);
  ljp_print_str(s->out, value ? "true" : "false");
}

void ljp_heap_show_string(struct ljp_heap_show *s, const char *key,
                          const char *text)
{
  if (!s->json)
    return;
  show_key(s, key);
  ljp_print_json(s->out, ljp_str(text, strlen(text)));
}

void ljp_heap_show_address(struct ljp_heap_show *s, uint64_t address)
{
  if (!s->json)
    return;
  show_key(s, "address");
  ljp_print_format(s->out, "\"0x%" PRIx64 "\"", address);
}

/* -- Of the text ----------------------------------------------------------- */

void ljp_heap_show_line(struct ljp_heap_show *s, const char *format, ...)
{
  struct ljp_heap_text t = {.len = 0};
  va_list args;
  if (s->json)
    return;
  va_start(args, format);
  int n = vsnprintf(t.data, sizeof t.data, format, args);
  va_end(args);
  t.len = n < 0 ? 0 : (size_t)n < sizeof t.data ? (size_t)n : sizeof t.data - 1;
  ljp_print_safe(s->out, ljp_str(t.data, t.len));
  ljp_print_str(s->out, "\n");
}

void ljp_heap_amount(struct ljp_heap_text *t, uint64_t bytes)
{
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double amount = (double)bytes;
  unsigned unit = 0;
  while (amount >= 999.5 && unit < 4) {
    amount /= 1024;
    unit++;
  }
  int digits = unit == 0 || amount >= 99.95 ? 0 : amount >= 9.995 ? 1 : 2;
  ljp_heap_format(t, "%.*f %s", digits, amount, units[unit]);
}

/* -- Tables ---------------------------------------------------------------- */

void ljp_heap_table(struct ljp_heap_show *s, const char *key, const char *heads)
{
  if (s->json) {
    show_key(s, key);
    ljp_print_str(s->out, "[");
    s->comma = false;
  } else {
    ljp_print_format(s->out, "\n%s\n", heads);
  }
}

void ljp_heap_table_end(struct ljp_heap_show *s)
{
  if (s->json)
    ljp_print_str(s->out, "]");
  s->comma = true;
}

void ljp_heap_row(struct ljp_heap_show *s)
{
  if (s->json)
    ljp_print_str(s->out, s->comma ? ",{" : "{");
  s->comma = false;
}

void ljp_heap_row_end(struct ljp_heap_show *s)
{
  ljp_print_str(s->out, s->json ? "}" : "\n");
  s->comma = s->json;
}

/* Columns are separated by spaces. */
static void show_column(struct ljp_heap_show *s, const char *text)
{
  ljp_print_format(s->out, "%s%10s", s->comma ? " " : "", text);
  s->comma = true;
}

void ljp_heap_cell_bytes(struct ljp_heap_show *s, const char *key,
                         uint64_t bytes)
{
  struct ljp_heap_text t = {.len = 0};
  ljp_heap_show_number(s, key, bytes);
  ljp_heap_amount(&t, bytes);
  if (!s->json)
    show_column(s, t.data);
}

void ljp_heap_cell_change(struct ljp_heap_show *s, const char *key,
                          int64_t bytes)
{
  struct ljp_heap_text t = {.len = 0};
  ljp_heap_show_signed(s, key, bytes);
  ljp_heap_format(&t, bytes < 0 ? "-" : "+");
  ljp_heap_amount(&t, bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes);
  if (!s->json)
    show_column(s, t.data);
}

void ljp_heap_cell_count(struct ljp_heap_show *s, const char *key,
                         uint64_t count)
{
  struct ljp_heap_text t = {.len = 0};
  ljp_heap_show_number(s, key, count);
  ljp_heap_format(&t, "%" PRIu64, count);
  if (!s->json)
    show_column(s, t.data);
}

void ljp_heap_cell_count_change(struct ljp_heap_show *s, const char *key,
                                int64_t count)
{
  struct ljp_heap_text t = {.len = 0};
  ljp_heap_show_signed(s, key, count);
  ljp_heap_format(&t, "%+" PRId64, count);
  if (!s->json)
    show_column(s, t.data);
}

void ljp_heap_cell_text(struct ljp_heap_show *s, const char *key,
                        const struct ljp_heap_text *t)
{
  if (s->json) {
    show_key(s, key);
    ljp_print_json(s->out, ljp_str(t->data, t->len));
  } else {
    ljp_print_str(s->out, "  ");
    ljp_print_safe(s->out, ljp_str(t->data, t->len));
  }
}

void ljp_heap_cell_word(struct ljp_heap_show *s, const char *key,
                        const char *word)
{
  if (s->json)
    ljp_heap_show_string(s, key, word);
  else
    show_column(s, word);
}

void ljp_heap_lines(struct ljp_heap_show *s, const char *key)
{
  if (s->json) {
    show_key(s, key);
    ljp_print_str(s->out, "[");
    s->comma = false;
  }
}

void ljp_heap_lines_add(struct ljp_heap_show *s,
                        const struct ljp_heap_text *line)
{
  if (s->json) {
    ljp_print_str(s->out, s->comma ? "," : "");
    ljp_print_json(s->out, ljp_str(line->data, line->len));
    s->comma = true;
  } else {
    ljp_print_format(s->out, "\n%36s", "");
    ljp_print_safe(s->out, ljp_str(line->data, line->len));
  }
}

void ljp_heap_lines_end(struct ljp_heap_show *s)
{
  if (s->json)
    ljp_print_str(s->out, "]");
  s->comma = true;
}

void ljp_heap_cell_indent(struct ljp_heap_show *s, unsigned levels)
{
  for (; !s->json && levels; levels--)
    ljp_print_str(s->out, "  ");
}
