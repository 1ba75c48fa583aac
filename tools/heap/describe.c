/*
** Objects and paths as text; see heap.h. Names come from the program's strings,
** as far as the snapshot has them. Who prints the text escapes it.
*/
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "parsers/stream/names.h"
#include "tools/heap/heap.h"

enum { KEYS_SHOWN = 4, STRING_SHOWN = 40, KEY_SHOWN = 60, STEPS = 40 };

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

/* The target of the first reference of this kind; 0: there is none. */
static uint32_t describe_follow(const struct ljp_graph *g, uint32_t node,
                                enum ljp_heap_how how)
{
  for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++)
    if ((g->how[e] & LJP_HEAP_HOW_MASK) == (unsigned)how)
      return g->target[e];
  return 0;
}

/* Where a prototype is: "app.lua". */
static void describe_chunk(const struct ljp_graph *g, uint32_t proto,
                           struct ljp_heap_text *t)
{
  char room[LJP_CHUNK_NAME_BYTES];
  uint32_t chunk = describe_follow(g, proto, LJP_HEAP_HOW_CHUNK);
  struct ljp_str name = ljp_graph_text(g, chunk ? g->text[chunk] : 0);
  if (name.len)
    ljp_heap_bytes(t, ljp_chunk_name(name, room), KEY_SHOWN);
  else
    ljp_heap_format(t, "?");
}

static void describe_function(const struct ljp_graph *g, uint32_t node,
                              struct ljp_heap_text *t)
{
  uint32_t proto = describe_follow(g, node, LJP_HEAP_HOW_PROTOTYPE);
  if (proto) {
    ljp_heap_format(t, "function ");
    describe_chunk(g, proto, t);
    ljp_heap_format(t, ":%" PRIu32, g->line[proto]);
  } else {
    ljp_heap_format(t, g->line[node] > 1 ? "builtin #%" PRIu32 : "C function",
                    g->line[node]);
  }
}

static struct ljp_str describe_string(const struct ljp_graph *g, uint32_t node)
{
  return ljp_graph_text(g, g->type[node] == LJP_MEM_TYPE_STRING ? g->text[node]
                                                                : 0);
}

/* The first string keys of a table. */
static void describe_keys(const struct ljp_graph *g, uint32_t node,
                          struct ljp_heap_text *t)
{
  unsigned keys = 0;
  uint32_t items = 0;
  ljp_heap_format(t, "table {");
  for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++) {
    unsigned how = g->how[e] & LJP_HEAP_HOW_MASK;
    items += how == LJP_HEAP_HOW_ITEM || how == LJP_HEAP_HOW_INTEGER;
    if (how != LJP_HEAP_HOW_KEY)
      continue;
    struct ljp_str key = describe_string(g, g->target[e]);
    if (!key.len)
      continue;
    if (keys++ == KEYS_SHOWN) {
      ljp_heap_format(t, ", ...");
      break;
    }
    ljp_heap_format(t, keys > 1 ? ", " : "");
    ljp_heap_bytes(t, key, STRING_SHOWN);
  }
  if (items)
    ljp_heap_format(t, "%s%" PRIu32 " items", keys ? "; " : "", items);
  ljp_heap_format(t, "}");
}

void ljp_heap_describe(const struct ljp_graph *g, uint32_t node,
                       struct ljp_heap_text *t)
{
  const char *type = ljp_name_mem_type(g->type[node]);
  switch (g->type[node]) {
  case LJP_MEM_TYPE_TABLE:
    describe_keys(g, node, t);
    break;
  case LJP_MEM_TYPE_FUNCTION:
    describe_function(g, node, t);
    break;
  case LJP_MEM_TYPE_STRING:
    ljp_heap_format(t, "string \"");
    ljp_heap_bytes(t, describe_string(g, node), STRING_SHOWN);
    ljp_heap_format(t, "\"");
    break;
  case LJP_MEM_TYPE_PROTO:
    ljp_heap_format(t, "prototype ");
    describe_chunk(g, node, t);
    ljp_heap_format(t, ":%" PRIu32, g->line[node]);
    break;
  default:
    ljp_heap_format(t, "%s", type ? type : "object of an unknown type");
  }
}

/* -- Paths ----------------------------------------------------------------- */

static bool path_is_name(struct ljp_str s)
{
  bool name = s.len > 0 && !isdigit((unsigned char)s.data[0]);
  for (uint32_t i = 0; i < s.len; i++)
    name = name && (isalnum((unsigned char)s.data[i]) || s.data[i] == '_');
  return name;
}

static void path_key(const struct ljp_graph *g, uint32_t key,
                     struct ljp_heap_text *t)
{
  struct ljp_str s = describe_string(g, key);
  if (path_is_name(s)) {
    ljp_heap_format(t, ".");
    ljp_heap_bytes(t, s, KEY_SHOWN);
  } else if (g->type[key] == LJP_MEM_TYPE_STRING) {
    ljp_heap_format(t, "[\"");
    ljp_heap_bytes(t, s, KEY_SHOWN);
    ljp_heap_format(t, "\"]");
  } else {
    ljp_heap_format(t, "[");
    ljp_heap_describe(g, key, t);
    ljp_heap_format(t, "]");
  }
}

/* The names of a prototype's upvalues follow each other, each with a NUL. */
static void path_upvalue(const struct ljp_graph *g, uint32_t function,
                         uint32_t number, struct ljp_heap_text *t)
{
  uint32_t proto = describe_follow(g, function, LJP_HEAP_HOW_PROTOTYPE);
  struct ljp_str names = ljp_graph_text(g, proto ? g->text[proto] : 0);
  for (uint32_t i = 0; names.len; i++) {
    const char *end = memchr(names.data, '\0', names.len);
    uint32_t len = end ? (uint32_t)(end - names.data) : names.len;
    if (i == number) {
      ljp_heap_format(t, " upvalue ");
      ljp_heap_bytes(t, (struct ljp_str){names.data, len}, KEY_SHOWN);
      break;
    }
    if (!end)
      break;
    names.data += len + 1;
    names.len -= len + 1;
  }
  if (!proto || !names.len)
    ljp_heap_format(t, " upvalue %" PRIu32, number);
  ljp_heap_format(t, " of ");
  describe_function(g, function, t);
}

/* The frame that a local variable belongs to. */
static void path_frame(const struct ljp_graph *g, uint32_t thread, uint32_t e,
                       struct ljp_heap_text *t)
{
  for (; e > g->first[thread]; e--) {
    if ((g->how[e - 1] & LJP_HEAP_HOW_MASK) != LJP_HEAP_HOW_FRAME)
      continue;
    ljp_heap_format(t, " of ");
    describe_function(g, g->target[e - 1], t);
    if (g->name[e - 1])
      ljp_heap_format(t, " at line %" PRIu32, g->name[e - 1]);
    return;
  }
}

/* Is this node held by this root? */
static bool path_is_root(const struct ljp_graph *g, uint32_t node,
                         enum ljp_heap_root root)
{
  uint32_t e = g->held_by[node];
  return node && g->holder[node] &&
         (g->how[e] & LJP_HEAP_HOW_MASK) == LJP_HEAP_HOW_ROOT &&
         g->name[e] == (uint32_t)root;
}

static bool path_is_loaded(const struct ljp_graph *g, uint32_t from,
                           uint32_t key)
{
  static const char loaded[] = "_LOADED";
  struct ljp_str s = describe_string(g, key);
  return path_is_root(g, from, LJP_HEAP_ROOT_REGISTRY) &&
         s.len == sizeof loaded - 1 && memcmp(s.data, loaded, s.len) == 0;
}

static void path_root(const struct ljp_graph *g, uint32_t from, uint32_t e,
                      struct ljp_heap_text *t)
{
  const char *name = from ? ljp_name_heap_root(g->name[e]) : NULL;
  uint8_t flags = g->flags[g->target[e]];
  if (from && g->name[e] == LJP_HEAP_ROOT_GLOBALS)
    ljp_heap_format(t, "_G");
  else if (from)
    ljp_heap_format(t, "%s", name ? name : "a root");
  else if (flags & LJP_HEAP_PINNED)
    ljp_heap_format(t, "pinned");
  else if (flags & LJP_HEAP_FINAL)
    ljp_heap_format(t, "waits for its finalizer");
}

static void path_step(const struct ljp_graph *g, uint32_t from, uint32_t e,
                      struct ljp_heap_text *t)
{
  unsigned how = g->how[e] & LJP_HEAP_HOW_MASK;
  switch (how) {
  case LJP_HEAP_HOW_ROOT:
    path_root(g, from, e, t);
    break;
  case LJP_HEAP_HOW_FIELD:
    if (path_is_loaded(g, from, g->name[e])) {
      t->len = 0; /* Of the registry. */
      ljp_heap_format(t, "package.loaded");
    } else {
      path_key(g, g->name[e], t);
    }
    break;
  case LJP_HEAP_HOW_ITEM:
  case LJP_HEAP_HOW_INTEGER:
    ljp_heap_format(t,
                    path_is_root(g, from, LJP_HEAP_ROOT_FFI)
                        ? " callback %" PRId32
                        : "[%" PRId32 "]",
                    (int32_t)g->name[e]);
    break;
  case LJP_HEAP_HOW_BOOLEAN:
    ljp_heap_format(t, g->name[e] ? "[true]" : "[false]");
    break;
  case LJP_HEAP_HOW_UPVALUE:
    path_upvalue(g, from, g->name[e], t);
    break;
  case LJP_HEAP_HOW_VALUE: /* Its upvalue has been told. */
    break;
  case LJP_HEAP_HOW_LOCAL:
    ljp_heap_format(t, " local ");
    ljp_heap_bytes(t, ljp_graph_text(g, g->name[e]), KEY_SHOWN);
    path_frame(g, from, e, t);
    break;
  case LJP_HEAP_HOW_SLOT:
    ljp_heap_format(t, " a temporary");
    path_frame(g, from, e, t);
    break;
  default:
    ljp_heap_format(t, " <%s>",
                    ljp_name_heap_how(how) ? ljp_name_heap_how(how) : "?");
  }
}

void ljp_heap_path(const struct ljp_graph *g, uint32_t node,
                   struct ljp_heap_text *t)
{
  uint32_t steps[STEPS], count = 0;
  uint64_t all = 0;
  if (g->holder[node] == UINT32_MAX) {
    ljp_heap_format(t, "garbage");
    return;
  }
  for (uint32_t at = node; at; at = g->holder[at])
    all++;
  /* Of a long way, the beginning and the end. */
  uint64_t number = all;
  for (uint32_t at = node; at; at = g->holder[at], number--)
    if (number <= STEPS / 2 || all - number < STEPS / 2)
      steps[count++] = at;
  bool cut = false;
  for (uint32_t at = 0; count; at = steps[count]) {
    uint32_t next = steps[--count];
    if (g->holder[next] != at && !cut) {
      ljp_heap_format(t, " ... ");
      cut = true;
    }
    path_step(g, g->holder[next], g->held_by[next], t);
  }
}
