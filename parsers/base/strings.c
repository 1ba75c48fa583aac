/*
** Interned strings. The bytes are stored in pieces, each filled from its
** front; a string longer than PIECE_BYTES gets a piece of its own.
*/
#include "parsers/base/strings.h"

#include <string.h>
#include <sys/random.h>

#include "parsers/base/array.h"
#include "src/base/assert.h"

#ifdef LJP_DEBUG
#define PIECE_BYTES 64u
#else
#define PIECE_BYTES 65536u
#endif

enum ljp_status ljp_strings_init(struct ljp_strings *s, size_t limit)
{
  *s = (struct ljp_strings){.limit = limit};
  if (getrandom(&s->seed, sizeof s->seed, GRND_NONBLOCK) < 0)
    s->seed = (uintptr_t)s;
  if (!ljp_array_reserve(&s->list, 0, &s->room, sizeof *s->list))
    return LJP_ERR_MEM;
  s->list[s->count++] = (struct ljp_str){"", 0};
  return LJP_OK;
}

void ljp_strings_fini(struct ljp_strings *s)
{
  for (uint32_t i = 0; i < s->piece_count; i++)
    free(s->pieces[i]);
  free(s->pieces);
  free(s->list);
  ljp_index_fini(&s->index);
  *s = (struct ljp_strings){0};
}

static uint32_t strings_hash(const struct ljp_strings *s, struct ljp_str string)
{
  uint64_t hash = ljp_hash_mix(s->seed, string.len), word;
  const char *p = string.data;
  uint32_t left = string.len;
  for (; left >= 8; left -= 8, p += 8) {
    memcpy(&word, p, 8);
    hash = ljp_hash_mix(hash, word);
  }
  word = 0;
  if (left)
    memcpy(&word, p, left);
  return ljp_hash_finish(ljp_hash_mix(hash, word));
}

/* Copies the bytes into a piece and makes *string point to the copy. */
static enum ljp_status strings_store(struct ljp_strings *s,
                                     struct ljp_str *string)
{
  size_t len = string->len;
  if (len > s->piece_left) {
    size_t size = len > PIECE_BYTES ? len : PIECE_BYTES;
    if (size > s->limit - s->bytes)
      return LJP_ERR_LIMIT;
    if (!ljp_array_reserve(&s->pieces, s->piece_count, &s->piece_room,
                           sizeof *s->pieces))
      return LJP_ERR_MEM;
    char *piece = malloc(size);
    if (!piece)
      return LJP_ERR_MEM;
    s->pieces[s->piece_count++] = piece;
    s->piece_left = size;
    s->bytes += size;
    string->data = memcpy(piece, string->data, len);
    s->piece_left -= len;
    return LJP_OK;
  }
  ljp_assert(s->piece_count && s->piece_left <= PIECE_BYTES);
  char *piece = s->pieces[s->piece_count - 1];
  string->data =
      memcpy(piece + (PIECE_BYTES - s->piece_left), string->data, len);
  s->piece_left -= len;
  return LJP_OK;
}

enum ljp_status ljp_strings_add(struct ljp_strings *strings, struct ljp_str s,
                                uint32_t *id)
{
  if (!s.len) {
    *id = 0;
    return LJP_OK;
  }
  if (!ljp_index_reserve(&strings->index) ||
      !ljp_array_reserve(&strings->list, strings->count, &strings->room,
                         sizeof *strings->list))
    return LJP_ERR_MEM;
  uint32_t hash = strings_hash(strings, s);
  struct ljp_index_slot *slot = ljp_index_at(&strings->index, hash);
  for (; slot->item; slot = ljp_index_next(&strings->index, slot)) {
    const struct ljp_str *old = &strings->list[slot->item - 1];
    if (slot->hash == hash && old->len == s.len &&
        memcmp(old->data, s.data, s.len) == 0) {
      *id = slot->item - 1;
      return LJP_OK;
    }
  }
  if (strings->count >= strings->limit / 8)
    return LJP_ERR_LIMIT;
  enum ljp_status status = strings_store(strings, &s);
  if (status)
    return status;
  ljp_index_put(&strings->index, slot, hash, strings->count);
  strings->list[strings->count] = s;
  *id = strings->count++;
  return LJP_OK;
}
