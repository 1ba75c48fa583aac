/*
** Simplifies the stack tree for exporters: frames that are written alike get
** one label, nodes of the same parent and label become one. Also writes texts,
** notices and paths.
*/
#include <stdlib.h>
#include <string.h>

#include "src/base/assert.h"
#include "tools/export/export.h"
#include "tools/shared/text.h"

/* Index of label texts. */
struct texts {
  char **text;
  size_t *len;
  uint32_t *slots; /* 0: free; else label + 1. */
  uint32_t room;   /* Size of slots: a power of two, twice the frames. */
};

static uint32_t fold_table_size(uint32_t count)
{
  uint32_t room = 16;
  while (room < UINT32_C(1) << 31 && room / 2 < count)
    room *= 2;
  return room;
}

static uint64_t fold_hash(const char *text, size_t len)
{
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < len; i++)
    hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
  return hash ^ hash >> 32;
}

/* The complete text of a frame. NULL: out of memory. */
static char *fold_frame_text(const struct ljp_export *e, uint32_t frame,
                             size_t *len)
{
  char small[LJP_FRAME_NAME_BYTES];
  *len = ljp_frame_name(e->p, frame, e->how, small, sizeof small);
  char *text = malloc(*len + 1);
  if (!text)
    return NULL;
  if (*len < sizeof small)
    memcpy(text, small, *len + 1);
  else
    ljp_frame_name(e->p, frame, e->how, text, *len + 1);
  return text;
}

static bool fold_add_label(struct ljp_labels *labels, struct texts *texts,
                           const struct ljp_export *e, uint32_t frame)
{
  size_t len;
  char *text = fold_frame_text(e, frame, &len);
  if (!text)
    return false;
  uint32_t mask = texts->room - 1;
  uint32_t i = (uint32_t)fold_hash(text, len) & mask;
  for (; texts->slots[i]; i = (i + 1) & mask) {
    uint32_t label = texts->slots[i] - 1;
    if (texts->len[label] == len && !memcmp(texts->text[label], text, len)) {
      free(text);
      labels->of_frame[frame] = label;
      return true;
    }
  }
  texts->text[labels->count] = text;
  texts->len[labels->count] = len;
  labels->frame[labels->count] = frame;
  labels->of_frame[frame] = labels->count;
  texts->slots[i] = ++labels->count;
  return true;
}

enum ljp_status ljp_labels_make(struct ljp_labels *labels,
                                const struct ljp_export *e)
{
  uint32_t count = e->p->frame_count;
  struct texts texts = {.room = fold_table_size(count)};
  *labels = (struct ljp_labels){0};
  labels->of_frame = calloc(count + 1, sizeof *labels->of_frame);
  labels->frame = calloc(count + 1, sizeof *labels->frame);
  texts.text = calloc(count + 1, sizeof *texts.text);
  texts.len = calloc(count + 1, sizeof *texts.len);
  texts.slots = calloc(texts.room, sizeof *texts.slots);
  bool ok = labels->of_frame && labels->frame && texts.text && texts.len &&
            texts.slots;
  for (uint32_t i = 0; ok && i < count; i++)
    ok = fold_add_label(labels, &texts, e, i);
  for (uint32_t i = 0; texts.text && i < labels->count; i++)
    free(texts.text[i]);
  free(texts.text);
  free(texts.len);
  free(texts.slots);
  if (!ok)
    ljp_labels_free(labels);
  return ok ? LJP_OK : LJP_ERR_MEM;
}

void ljp_labels_free(struct ljp_labels *labels)
{
  free(labels->of_frame);
  free(labels->frame);
  *labels = (struct ljp_labels){0};
}

enum ljp_status ljp_fold(struct ljp_folded *f, const struct ljp_export *e)
{
  uint32_t count = e->p->node_count, room = fold_table_size(count);
  *f = (struct ljp_folded){.count = 1};
  enum ljp_status status = ljp_labels_make(&f->labels, e);
  if (status)
    return status;
  f->of_node = calloc(count + 1, sizeof *f->of_node);
  f->parent = calloc(count + 1, sizeof *f->parent);
  f->label = calloc(count + 1, sizeof *f->label);
  uint32_t *slots = calloc(room, sizeof *slots);
  if (!f->of_node || !f->parent || !f->label || !slots) {
    free(slots);
    ljp_folded_free(f);
    return LJP_ERR_MEM;
  }
  for (uint32_t node = 1; node < count; node++) {
    uint32_t parent = f->of_node[e->p->nodes[node].parent];
    ljp_assert(e->p->nodes[node].parent < node && parent < f->count);
    uint32_t label = f->labels.of_frame[e->p->nodes[node].frame];
    uint64_t key = (uint64_t)parent << 32 | label;
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t i = (uint32_t)(hash >> 32) & (room - 1);
    while (slots[i] &&
           (f->parent[slots[i]] != parent || f->label[slots[i]] != label))
      i = (i + 1) & (room - 1);
    if (!slots[i]) {
      f->parent[f->count] = parent;
      f->label[f->count] = label;
      slots[i] = f->count++;
    }
    f->of_node[node] = slots[i];
  }
  free(slots);
  return LJP_OK;
}

void ljp_folded_free(struct ljp_folded *f)
{
  ljp_labels_free(&f->labels);
  free(f->of_node);
  free(f->parent);
  free(f->label);
  *f = (struct ljp_folded){0};
}

void ljp_export_notices(struct ljp_export *e, const char *before,
                        const char *behind)
{
  const char *text;
  for (uint32_t i = 0; (text = ljp_profile_notice(e->p, i)); i++) {
    ljp_print_str(e->out, before);
    ljp_print_plain(e->out, ljp_str(text, strlen(text)), 0);
    ljp_print_str(e->out, behind);
  }
}

void ljp_export_path(const struct ljp_profile *p, uint32_t node,
                     uint32_t path[LJP_EXPORT_DEPTH], uint32_t *count)
{
  uint32_t n = 0;
  for (uint32_t at = node; at; at = p->nodes[at].parent)
    n++;
  /* Deeper stacks lose their innermost frames but keep their values. */
  for (; n > LJP_EXPORT_DEPTH; n--)
    node = p->nodes[node].parent;
  *count = n;
  for (; n; node = p->nodes[node].parent)
    path[--n] = node;
}

struct ljp_str ljp_export_plain(struct ljp_str text)
{
  char *copy = malloc((size_t)text.len + 1);
  uint32_t len = 0;
  while (copy && text.len) {
    uint32_t rune;
    struct ljp_str c = ljp_text_next(&text, &rune);
    bool shown = rune != LJP_TEXT_BAD && !ljp_text_is_hidden(rune);
    memcpy(copy + len, shown ? c.data : "?", shown ? c.len : 1);
    len += shown ? c.len : 1;
  }
  return ljp_str(copy, len);
}

char *ljp_export_key(struct ljp_str key)
{
  char *plain = malloc((size_t)key.len + 2);
  size_t len = 0;
  if (!plain)
    return NULL;
  if (!key.len || (key.data[0] >= '0' && key.data[0] <= '9'))
    plain[len++] = '_';
  for (uint32_t i = 0; i < key.len; i++) {
    char c = key.data[i];
    bool fit = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               (c >= '0' && c <= '9') || c == '_';
    plain[len++] = fit ? c : '_';
  }
  plain[len] = '\0';
  return plain;
}
