/*
** Reads UTF-8, and knows the characters that hide or disguise others.
*/
#include "tools/shared/text.h"

/* Length of the UTF-8 sequence at p; 0: not valid. */
static size_t text_utf8_length(const uint8_t *p, const uint8_t *end,
                               uint32_t *rune)
{
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  size_t n = *p < 0x80 ? 1 : *p < 0xc0 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
  if (*p >= 0xf8 || n == 0 || (size_t)(end - p) < n)
    return 0;
  *rune = n == 1 ? *p : *p & (0x7fu >> n);
  for (size_t i = 1; i < n; i++) {
    if ((p[i] & 0xc0) != 0x80)
      return 0;
    *rune = *rune << 6 | (p[i] & 0x3f);
  }
  if (*rune < least[n] || *rune > 0x10ffff ||
      (*rune >= 0xd800 && *rune <= 0xdfff))
    return 0;
  return n;
}

struct ljp_str ljp_text_next(struct ljp_str *s, uint32_t *rune)
{
  const uint8_t *p = (const uint8_t *)s->data;
  size_t n = text_utf8_length(p, p + s->len, rune);
  if (!n) {
    *rune = LJP_TEXT_BAD;
    n = 1;
  }
  struct ljp_str taken = {s->data, (uint32_t)n};
  s->data += n;
  s->len -= (uint32_t)n;
  return taken;
}

bool ljp_text_is_hidden(uint32_t rune)
{
  static const struct {
    uint32_t first, last;
  } hidden[] = {
      {0x0000, 0x001f},   /* C0 */
      {0x007f, 0x009f},   /* DEL and C1 */
      {0x00ad, 0x00ad},   /* soft hyphen */
      {0x034f, 0x034f},   /* grapheme joiner */
      {0x061c, 0x061c},   /* direction: Arabic letter mark */
      {0x115f, 0x1160},   /* Hangul fillers */
      {0x17b4, 0x17b5},   /* Khmer inherent vowels */
      {0x180b, 0x180f},   /* Mongolian selectors and separator */
      {0x200b, 0x200f},   /* zero width; direction: marks */
      {0x2028, 0x202e},   /* line separators; direction: embeddings */
      {0x2060, 0x206f},   /* joiners; direction: isolates */
      {0x3164, 0x3164},   /* Hangul filler */
      {0xfe00, 0xfe0f},   /* variation selectors */
      {0xfeff, 0xfeff},   /* byte order mark */
      {0xffa0, 0xffa0},   /* Hangul filler */
      {0xfff0, 0xfffb},   /* annotations */
      {0xe0000, 0xe0fff}, /* tags, variation selectors */
  };
  if (rune >= 0x20 && rune < 0x7f)
    return false;
  for (unsigned i = 0; i < sizeof hidden / sizeof *hidden; i++)
    if (rune >= hidden[i].first && rune <= hidden[i].last)
      return true;
  return false;
}

bool ljp_text_is_utf8(struct ljp_str s)
{
  while (s.len) {
    uint32_t rune;
    ljp_text_next(&s, &rune);
    if (rune == LJP_TEXT_BAD)
      return false;
  }
  return true;
}
