/*
** Flat records: tables and decoder, generated from the lists of item.h. Any
** thread.
*/
#include "parsers/stream/record.h"

#include <string.h>

#include "parsers/stream/labels.h"
#include "src/base/assert.h"
#include "src/base/varint.h"

const struct ljp_field *ljp_record_fields(uint64_t tag, unsigned *count)
{
#define FIELD(type, name, show)                                                \
  {#name, LJP_FIELD_##type, LJP_SHOW_##show, offsetof(record, name)},
#define LJP_X(tag, member)                                                     \
  case LJP_REC_##tag: {                                                        \
    typedef struct ljp_rec_##member record;                                    \
    static const struct ljp_field fields[] = {LJP_FIELDS_##tag(FIELD)};        \
    *count = sizeof fields / sizeof *fields;                                   \
    return fields;                                                             \
  }
  switch (tag) {
    LJP_FLAT_LIST(LJP_X)
  }
#undef LJP_X
#undef FIELD
  return NULL;
}

bool ljp_pairs_next(struct ljp_pairs *pairs, uint64_t *a, uint64_t *b)
{
  const uint8_t *p = pairs->data;
  if (!pairs->count)
    return false;
  p = ljp_get_varint(p, pairs->end, a);
  if (p)
    p = ljp_get_varint(p, pairs->end, b);
  if (!p) {
    pairs->count = 0;
    return false;
  }
  pairs->data = p;
  pairs->count--;
  return true;
}

/* Why no number could be read at p: it is cut off or too long. */
static enum ljp_bad_reason record_bad_number(const uint8_t *p,
                                             const uint8_t *end)
{
  return end - p < LJP_VARINT_MAX_BYTES ? LJP_BAD_SHORT : LJP_BAD_NUMBER;
}

static enum ljp_bad_reason
record_get_string(const uint8_t **body, const uint8_t *end, struct ljp_str *out)
{
  uint64_t len;
  const uint8_t *p = ljp_get_varint(*body, end, &len);
  if (!p)
    return record_bad_number(*body, end);
  if (len > LJP_STRING_MAX_BYTES || len > (uint64_t)(end - p))
    return LJP_BAD_STRING;
  *out = (struct ljp_str){(const char *)p, (uint32_t)len};
  *body = p + len;
  return LJP_BAD_NONE;
}

/* The count is only a claim. So each pair is checked here; ljp_pairs_next()
** then cannot fail. */
static enum ljp_bad_reason record_get_pairs(const uint8_t **body,
                                            const uint8_t *end,
                                            struct ljp_pairs *out)
{
  uint64_t count, ignored;
  const uint8_t *p = ljp_get_varint(*body, end, &count);
  if (!p)
    return record_bad_number(*body, end);
  *out = (struct ljp_pairs){count, p, end};
  if (count > (uint64_t)(end - p) / 2)
    return LJP_BAD_PAIRS;
  for (uint64_t i = 0; i < count * 2; i++) {
    const uint8_t *next = ljp_get_varint(p, end, &ignored);
    if (!next)
      return record_bad_number(p, end);
    p = next;
  }
  out->end = p;
  *body = p;
  return LJP_BAD_NONE;
}

enum ljp_bad_reason ljp_record_decode(uint64_t tag, const uint8_t *body,
                                      const uint8_t *end, uint64_t block_time,
                                      struct ljp_item *item)
{
  unsigned count = 0;
  const struct ljp_field *field = ljp_record_fields(tag, &count);
  enum ljp_bad_reason bad = LJP_BAD_NONE;
  ljp_assert(field && body <= end);
  memset(&item->u, 0, sizeof item->u);
  for (; count && !bad; count--, field++) {
    char *member = (char *)&item->u + field->offset;
    uint64_t value;
    if (field->type == LJP_FIELD_STR) {
      struct ljp_str string;
      if (!(bad = record_get_string(&body, end, &string)))
        memcpy(member, &string, sizeof string);
      continue;
    }
    if (field->type == LJP_FIELD_PAIRS) {
      struct ljp_pairs pairs;
      if (!(bad = record_get_pairs(&body, end, &pairs)))
        memcpy(member, &pairs, sizeof pairs);
      continue;
    }
    if (field->type == LJP_FIELD_U1 && body == end)
      break;
    const uint8_t *next = ljp_get_varint(body, end, &value);
    if (!next)
      return record_bad_number(body, end);
    body = next;
    if (field->type != LJP_FIELD_U && field->type != LJP_FIELD_U1)
      value = (uint64_t)ljp_unzigzag(value);
    if (field->type == LJP_FIELD_T)
      item->time_ns = value += block_time;
    memcpy(member, &value, sizeof value);
  }
  if (tag == LJP_REC_LABELS && !bad &&
      !ljp_labels_are_valid(item->u.labels.labels))
    bad = LJP_BAD_LABELS;
  return bad;
}
