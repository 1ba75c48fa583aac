/*
** Paths to objects as text; see heap.h. Who prints the text escapes it.
*/
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "parsers/stream/names.h"
#include "tools/heap/heap.h"

enum { KEY_SHOWN = 60, STEPS = 40 };

bool ljp_heap_is_name(struct ljp_str s)
{
  bool name = s.len > 0 && !isdigit((unsigned char)s.data[0]);
  for (uint32_t i = 0; i < s.len; i++)
    name = name && (isalnum((unsigned char)s.data[i]) || s.data[i] == '_');
  return name;
}

static void path_key(const struct ljp_graph *g, uint32_t key,
                     struct ljp_heap_text *t)
{
  struct ljp_str s = ljp_graph_string(g, key);
  if (ljp_heap_is_name(s)) {
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
  uint32_t proto = ljp_heap_follow(g, function, LJP_HEAP_HOW_PROTOTYPE);
  struct ljp_str names = ljp_graph_upvalues(g, proto);
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
  ljp_heap_describe_function(g, function, t);
}

bool ljp_heap_is_root(const struct ljp_graph *g, uint32_t node,
                      enum ljp_heap_root root)
{
  uint32_t e = g->held_by[node];
  return node && ljp_graph_is_held(g, node) &&
         ljp_graph_how(g, e) == LJP_HEAP_HOW_ROOT &&
         g->name[e] == (uint32_t)root;
}

static bool path_is_loaded(const struct ljp_graph *g, uint32_t from,
                           uint32_t key)
{
  static const char loaded[] = "_LOADED";
  struct ljp_str s = ljp_graph_string(g, key);
  return ljp_heap_is_root(g, from, LJP_HEAP_ROOT_REGISTRY) &&
         s.len == sizeof loaded - 1 && memcmp(s.data, loaded, s.len) == 0;
}

bool ljp_heap_is_loaded(const struct ljp_graph *g, uint32_t node)
{
  uint32_t e = g->held_by[node];
  return node && ljp_graph_is_held(g, node) &&
         ljp_graph_how(g, e) == LJP_HEAP_HOW_FIELD &&
         path_is_loaded(g, g->holder[node], g->name[e]);
}

uint32_t ljp_heap_frame_of(const struct ljp_graph *g, uint32_t thread,
                           uint32_t ref)
{
  for (uint32_t e = ref; e > g->first[thread]; e--)
    if (ljp_graph_how(g, e - 1) == LJP_HEAP_HOW_FRAME)
      return e - 1;
  return UINT32_MAX;
}

/* The frame that a local variable belongs to. */
static void path_frame(const struct ljp_graph *g, uint32_t thread, uint32_t ref,
                       struct ljp_heap_text *t)
{
  uint32_t e = ljp_heap_frame_of(g, thread, ref);
  if (e == UINT32_MAX)
    return;
  ljp_heap_format(t, " of ");
  ljp_heap_describe_function(g, g->target[e], t);
  if (g->name[e])
    ljp_heap_format(t, " at line %" PRIu32, g->name[e]);
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

/* Takes the text off the end, if it is there. */
static void path_cut(struct ljp_heap_text *t, const char *end)
{
  size_t len = strlen(end);
  if (t->len >= len && !memcmp(t->data + t->len - len, end, len))
    t->len -= len;
}

/* The FFI's table has callbacks by number, and metatables by negated C type. */
static void path_number(const struct ljp_graph *g, uint32_t from,
                        int32_t number, struct ljp_heap_text *t)
{
  if (!ljp_heap_is_root(g, from, LJP_HEAP_ROOT_FFI)) {
    ljp_heap_format(t, "[%" PRId32 "]", number);
  } else if (number >= 0) {
    ljp_heap_format(t, " callback %" PRId32, number);
  } else {
    ljp_heap_format(t, " metatype ");
    ljp_heap_describe_ctype(g, 0 - (uint32_t)number, t);
  }
}

/* "FFI callbacks", if that is what most of the table's values are. */
static void path_ffi(const struct ljp_graph *g, uint32_t node,
                     struct ljp_heap_text *t)
{
  uint32_t callbacks = 0, all = 0;
  for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++) {
    unsigned how = ljp_graph_how(g, e);
    if (how != LJP_HEAP_HOW_ITEM && how != LJP_HEAP_HOW_INTEGER)
      continue;
    all++;
    callbacks += (int32_t)g->name[e] >= 0;
  }
  if (all)
    ljp_heap_format(t, callbacks > all / 2 ? " callbacks" : " metatypes");
}

void ljp_heap_step(const struct ljp_graph *g, uint32_t from, uint32_t e,
                   struct ljp_heap_text *t)
{
  unsigned how = ljp_graph_how(g, e);
  switch (how) {
  case LJP_HEAP_HOW_ROOT:
    path_root(g, from, e, t);
    break;
  case LJP_HEAP_HOW_FIELD:
    if (path_is_loaded(g, from, g->name[e])) {
      path_cut(t, "registry");
      ljp_heap_format(t, "package.loaded");
    } else {
      path_key(g, g->name[e], t);
    }
    break;
  case LJP_HEAP_HOW_ITEM:
  case LJP_HEAP_HOW_INTEGER:
    path_number(g, from, (int32_t)g->name[e], t);
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
  if (!ljp_graph_is_held(g, node)) {
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
    uint32_t next = steps[--count], holder = g->holder[next];
    if (holder != at && !cut) {
      ljp_heap_format(t, " ... ");
      cut = true;
    }
    ljp_heap_step(g, holder, g->held_by[next], t);
  }
  if (ljp_heap_is_root(g, node, LJP_HEAP_ROOT_FFI))
    path_ffi(g, node, t);
  if (!t->len)
    ljp_heap_format(t, "the VM itself");
}
