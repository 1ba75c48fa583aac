/*
** See heap_names.h.
*/
#include "tools/export/heap_names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/stream/names.h"

enum {
  NAMES_BYTES = 128 << 20,
  NAMES_COUNT = 4 << 20,
  NAMES_PATHS = 100 /* Looking up one may take as long as the heap is large. */
};

static uint64_t names_hash(const char *text, size_t len)
{
  uint64_t hash = len;
  for (size_t i = 0; i < len; i++)
    hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
  return hash ^ hash >> 29;
}

static struct ljp_str names_made(const struct ljp_heap_names *n, uint32_t i)
{
  struct ljp_str text;
  memcpy(&text.len, n->texts + n->at[i], sizeof text.len);
  text.data = n->texts + n->at[i] + sizeof text.len;
  return text;
}

static bool names_grow_slots(struct ljp_heap_names *n)
{
  uint32_t count = n->slot_count ? n->slot_count * 2 : 1024;
  uint32_t *slots = calloc(count, sizeof *slots);
  if (!slots)
    return false;
  for (uint32_t i = 0; i < n->count; i++) {
    struct ljp_str text = names_made(n, i);
    uint32_t slot = (uint32_t)names_hash(text.data, text.len) & (count - 1);
    while (slots[slot])
      slot = (slot + 1) & (count - 1);
    slots[slot] = i + 1;
  }
  free(n->slots);
  n->slots = slots;
  n->slot_count = count;
  return true;
}

static bool names_make_room(struct ljp_heap_names *n, size_t bytes)
{
  if (n->count == n->at_room) {
    uint32_t room = n->at_room ? n->at_room * 2 : 512;
    uint32_t *at = realloc(n->at, room * sizeof *at);
    if (!at)
      return false;
    n->at = at;
    n->at_room = room;
  }
  if (n->bytes + bytes > n->room) {
    size_t room = n->room * 2 + bytes + 4096;
    char *texts = realloc(n->texts, room);
    if (!texts)
      return false;
    n->texts = texts;
    n->room = room;
  }
  return n->count * UINT64_C(2) < n->slot_count || names_grow_slots(n);
}

uint32_t ljp_heap_names_add(struct ljp_heap_names *n, const char *text,
                            size_t len)
{
  uint32_t length = (uint32_t)len, slot;
  if (n->no_memory || !names_make_room(n, sizeof length + len)) {
    n->no_memory = true;
    return 0;
  }
  slot = (uint32_t)names_hash(text, len) & (n->slot_count - 1);
  for (; n->slots[slot]; slot = (slot + 1) & (n->slot_count - 1)) {
    struct ljp_str had = names_made(n, n->slots[slot] - 1);
    if (had.len == length && memcmp(had.data, text, len) == 0)
      return n->first + n->slots[slot] - 1;
  }
  if (n->count && (n->count >= NAMES_COUNT || n->bytes >= NAMES_BYTES)) {
    n->left_out++;
    return n->first; /* "(no name)" */
  }
  n->at[n->count] = (uint32_t)n->bytes;
  memcpy(n->texts + n->bytes, &length, sizeof length);
  memcpy(n->texts + n->bytes + sizeof length, text, len);
  n->bytes += sizeof length + len;
  n->slots[slot] = ++n->count;
  return n->first + n->count - 1;
}

static uint32_t names_add_text(struct ljp_heap_names *n,
                               const struct ljp_heap_text *text)
{
  return ljp_heap_names_add(n, text->data, text->len);
}

/* -- Objects --------------------------------------------------------------- */

/* Does the kind of an object say all that its name should say? */
static bool names_by_kind(const struct ljp_graph *g, uint32_t node)
{
  switch (g->type[node]) {
  case LJP_MEM_TYPE_PROTO:
    return false;
  case LJP_MEM_TYPE_FUNCTION: /* Builtins and C functions are one kind. */
    return ljp_heap_follow(g, node, LJP_HEAP_HOW_PROTOTYPE) != 0;
  }
  return true;
}

static void names_of_objects(struct ljp_heap_names *n,
                             const struct ljp_heap_kinds *kinds,
                             uint32_t *of_kind)
{
  const struct ljp_graph *g = n->g;
  uint32_t strings = 0, paths = NAMES_PATHS;
  for (uint32_t i = 0; i < kinds->count; i++) {
    struct ljp_heap_text text = {.len = 0};
    ljp_heap_kind_name(g, &kinds->list[i], &paths, &text);
    of_kind[i] = names_add_text(n, &text);
  }
  for (uint32_t i = 1; i < g->count; i++) {
    if (g->type[i] == LJP_MEM_TYPE_STRING) {
      n->of_node[i] = ++strings;
    } else if (names_by_kind(g, i)) {
      n->of_node[i] = of_kind[kinds->of[i]];
    } else {
      struct ljp_heap_text text = {.len = 0};
      ljp_heap_describe(g, i, &text);
      n->of_node[i] = names_add_text(n, &text);
    }
  }
}

enum ljp_status ljp_heap_names_init(struct ljp_heap_names *n,
                                    const struct ljp_graph *g,
                                    const uint32_t *lengths)
{
  static const char no_name[] = "(no name)";
  struct ljp_heap_kinds kinds;
  *n = (struct ljp_heap_names){.g = g, .lengths = lengths, .first = 1};
  for (uint32_t i = 1; i < g->count; i++)
    n->first += g->type[i] == LJP_MEM_TYPE_STRING;
  enum ljp_status status = ljp_heap_kinds_find(g, &kinds);
  uint32_t *of_kind = calloc(kinds.count + (size_t)1, sizeof *of_kind);
  n->of_node = calloc(g->count, sizeof *n->of_node);
  if (!of_kind || !n->of_node)
    status = LJP_ERR_MEM;
  if (!status) {
    ljp_heap_names_add(n, no_name, sizeof no_name - 1);
    names_of_objects(n, &kinds, of_kind);
    status = n->no_memory ? LJP_ERR_MEM : LJP_OK;
  }
  free(of_kind);
  ljp_heap_kinds_fini(&kinds);
  return status;
}

void ljp_heap_names_fini(struct ljp_heap_names *n)
{
  free(n->of_node);
  free(n->texts);
  free(n->at);
  free(n->slots);
}

/* -- Text ------------------------------------------------------------------ */

/* A string of the heap, as far as the snapshot has it. */
static void names_contents(const struct ljp_heap_names *n, uint32_t node,
                           struct ljp_heap_text *text)
{
  struct ljp_str kept = ljp_graph_string(n->g, node);
  uint32_t length = n->lengths[node];
  if (!kept.len && length) {
    ljp_heap_format(text, "(string of %" PRIu32 " bytes)", length);
    return;
  }
  ljp_heap_bytes(text, kept, sizeof text->data - 64);
  if (kept.len > sizeof text->data - 64 || kept.len < length)
    ljp_heap_format(text, "... (%" PRIu32 " bytes)", length);
}

void ljp_heap_names_put(const struct ljp_heap_names *n, uint32_t number,
                        struct ljp_heap_text *text)
{
  if (number >= n->first && number - n->first < n->count)
    ljp_heap_bytes(text, names_made(n, number - n->first), sizeof text->data);
}

static void names_quote(struct ljp_print *out, struct ljp_str text)
{
  ljp_print_str(out, ",\n");
  ljp_print_json(out, text);
}

void ljp_heap_names_write(const struct ljp_heap_names *n, struct ljp_print *out)
{
  const struct ljp_graph *g = n->g;
  ljp_print_str(out, "\"\"");
  for (uint32_t i = 1; i < g->count; i++) {
    struct ljp_heap_text text = {.len = 0};
    if (g->type[i] != LJP_MEM_TYPE_STRING)
      continue;
    names_contents(n, i, &text);
    names_quote(out, ljp_str(text.data, text.len));
  }
  for (uint32_t i = 0; i < n->count; i++)
    names_quote(out, names_made(n, i));
}
