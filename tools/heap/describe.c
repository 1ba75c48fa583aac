/*
** Objects as text; see heap.h. Names come from the program's strings,
** as far as the snapshot has them. Who prints the text escapes it.
*/
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/profile/plain_names.h"
#include "parsers/stream/names.h"
#include "tools/heap/heap.h"

enum { KEYS_SHOWN = 4, KEYS_SORTED = 17, STRING_SHOWN = 40, CHUNK_SHOWN = 60 };

void ljp_heap_format(struct ljp_heap_text *t, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  int n = vsnprintf(t->data + t->len, sizeof t->data - t->len, format, args);
  va_end(args);
  if (n > 0)
    t->len += (size_t)n;
  if (t->len >= sizeof t->data)
    t->len = sizeof t->data - 1;
}

void ljp_heap_bytes(struct ljp_heap_text *t, struct ljp_str s, size_t limit)
{
  size_t n = s.len < limit ? s.len : limit;
  if (n > sizeof t->data - 1 - t->len)
    n = sizeof t->data - 1 - t->len;
  memcpy(t->data + t->len, s.data, n);
  t->len += n;
  t->data[t->len] = '\0';
}

/* -- Objects --------------------------------------------------------------- */

uint32_t ljp_heap_follow(const struct ljp_graph *g, uint32_t node,
                         enum ljp_heap_how how)
{
  uint32_t ref = ljp_graph_ref(g, node, how);
  return ref == UINT32_MAX ? 0 : g->target[ref];
}

/* Where a prototype is: "app.lua". */
static void describe_chunk(const struct ljp_graph *g, uint32_t proto,
                           struct ljp_heap_text *t)
{
  char room[LJP_CHUNK_NAME_BYTES];
  uint32_t chunk = ljp_heap_follow(g, proto, LJP_HEAP_HOW_CHUNK);
  struct ljp_str name = ljp_graph_string(g, chunk);
  if (name.len)
    ljp_heap_bytes(t, ljp_chunk_name(name, room), CHUNK_SHOWN);
  else
    ljp_heap_format(t, "?");
}

/* "string.gmatch" of a builtin, or its number where names are not known. */
static void describe_builtin(const struct ljp_graph *g, uint32_t node,
                             struct ljp_heap_text *t)
{
  struct ljp_str name = ljp_graph_builtin(g, node);
  const char *plain = ljp_plain_name(name);
  if (plain)
    name = (struct ljp_str){plain, (uint32_t)strlen(plain)};
  if (g->detail[node] <= 1)
    ljp_heap_format(t, "C function");
  else if (!name.len)
    ljp_heap_format(t, "builtin #%" PRIu32, g->detail[node]);
  ljp_heap_bytes(t, name, CHUNK_SHOWN);
}

void ljp_heap_describe_function(const struct ljp_graph *g, uint32_t node,
                                struct ljp_heap_text *t)
{
  uint32_t proto = ljp_heap_follow(g, node, LJP_HEAP_HOW_PROTOTYPE);
  if (proto) {
    ljp_heap_format(t, "function ");
    describe_chunk(g, proto, t);
    ljp_heap_format(t, ":%" PRIu32, ljp_graph_line(g, proto));
  } else {
    describe_builtin(g, node, t);
  }
}

static int describe_by_text(const void *a, const void *b)
{
  const struct ljp_str *x = a, *y = b;
  int order = memcmp(x->data, y->data, x->len < y->len ? x->len : y->len);
  return order ? order : x->len < y->len ? -1 : x->len > y->len;
}

void ljp_heap_describe_table(const struct ljp_graph *g, uint32_t node,
                             bool with_items, struct ljp_heap_text *t)
{
  struct ljp_str keys[KEYS_SORTED] = {{NULL, 0}};
  uint32_t count = 0, items = 0, objects = 0;
  for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++) {
    unsigned how = ljp_graph_how(g, e);
    items += how == LJP_HEAP_HOW_ITEM ||
             (how >= LJP_HEAP_HOW_INTEGER && how <= LJP_HEAP_HOW_POINTER);
    struct ljp_str key = ljp_graph_string(g, g->target[e]);
    if (how == LJP_HEAP_HOW_KEY && key.len && count < KEYS_SORTED)
      keys[count++] = key;
    objects +=
        how == LJP_HEAP_HOW_KEY && g->type[g->target[e]] != LJP_MEM_TYPE_STRING;
  }
  if (count)
    qsort(keys, count, sizeof *keys, describe_by_text);
  ljp_heap_format(t, "table {");
  for (uint32_t i = 0; i < count && i <= KEYS_SHOWN; i++) {
    ljp_heap_format(t, i ? ", " : "");
    if (i < KEYS_SHOWN)
      ljp_heap_bytes(t, keys[i], STRING_SHOWN);
    else
      ljp_heap_format(t, "...");
  }
  if (items && with_items)
    ljp_heap_format(t, "%s%" PRIu32 " items", count ? "; " : "", items);
  else if (items)
    ljp_heap_format(t, count ? "; items" : "items");
  if (objects && with_items)
    ljp_heap_format(t, "%s%" PRIu32 " objects as keys",
                    count || items ? "; " : "", objects);
  ljp_heap_format(t, "}");
}

void ljp_heap_describe(const struct ljp_graph *g, uint32_t node,
                       struct ljp_heap_text *t)
{
  const char *type = ljp_name_mem_type(g->type[node]);
  switch (g->type[node]) {
  case LJP_MEM_TYPE_TABLE:
    ljp_heap_describe_table(g, node, true, t);
    break;
  case LJP_MEM_TYPE_FUNCTION:
    ljp_heap_describe_function(g, node, t);
    break;
  case LJP_MEM_TYPE_STRING:
    ljp_heap_format(t, "string \"");
    ljp_heap_bytes(t, ljp_graph_string(g, node), STRING_SHOWN);
    ljp_heap_format(t, "\"");
    break;
  case LJP_MEM_TYPE_CDATA:
    ljp_heap_format(t, "cdata ");
    ljp_heap_describe_ctype(g, g->detail[node], t);
    break;
  case LJP_MEM_TYPE_PROTO:
    ljp_heap_format(t, "prototype ");
    describe_chunk(g, node, t);
    ljp_heap_format(t, ":%" PRIu32, ljp_graph_line(g, node));
    break;
  default:
    ljp_heap_format(t, "%s", type ? type : "object of an unknown type");
  }
}
