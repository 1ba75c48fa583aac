/*
** ULEB128 numbers, read a word at a time: addresses take seven bytes. The
** caller has LJP_NUMBER_ROOM readable bytes at p.
*/
#ifndef LJP_PARSERS_TARANTOOL_NUMBER_H
#define LJP_PARSERS_TARANTOOL_NUMBER_H

#include <stdbool.h>
#include <string.h>

#include "src/base/sigsafe.h"
#include "src/base/varint.h"

#define LJP_NUMBER_ROOM LJP_VARINT_MAX_BYTES

/* Not inlined, so that the caller's p stays in a register. NULL: more than 64
** bits. */
static __attribute__((noinline, unused)) const uint8_t *
ljp_number_long(const uint8_t *p, uint64_t *value)
{
  return ljp_get_varint(p, p + LJP_VARINT_MAX_BYTES, value);
}

/* Joins the low 7 bits of each byte of a word: pairs of bytes, pairs of pairs,
** both halves. */
static inline uint64_t ljp_number_join(uint64_t word)
{
  word = (word & UINT64_C(0x007f007f007f007f)) |
         (word & UINT64_C(0x7f007f007f007f00)) >> 1;
  word = (word & UINT64_C(0x00003fff00003fff)) |
         (word & UINT64_C(0x3fff00003fff0000)) >> 2;
  return (word & UINT64_C(0x0fffffff)) |
         (word & UINT64_C(0x0fffffff00000000)) >> 4;
}

/* Reads a number at *p and moves p; false: more than 64 bits. */
static inline bool ljp_number_get(const uint8_t **p, uint64_t *value)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  uint64_t word;
  memcpy(&word, *p, sizeof word);
  uint64_t stops = ~word & UINT64_C(0x8080808080808080);
  if (LJP_LIKELY(stops)) {
    /* The bytes up to the first without a continuation bit. */
    *p += (unsigned)(__builtin_ctzll(stops) + 1) / 8;
    *value = ljp_number_join(word & (stops ^ (stops - 1)));
    return true;
  }
#endif
  uint64_t number;
  const uint8_t *next = ljp_number_long(*p, &number);
  if (!next)
    return false;
  *p = next;
  *value = number;
  return true;
}

/* The same for numbers of which nearly all are addresses, which take 7 bytes.
** The processor foresees the branch, and does not wait for the length. */
static inline bool ljp_number_address(const uint8_t **p, uint64_t *value)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  uint64_t word;
  memcpy(&word, *p, sizeof word);
  if (LJP_LIKELY((word & UINT64_C(0x0080808080808080)) ==
                 UINT64_C(0x0000808080808080))) {
    *p += 7;
    *value = ljp_number_join(word & UINT64_C(0x00ffffffffffffff));
    return true;
  }
#endif
  return ljp_number_get(p, value);
}

/* Moves p behind a number without its value; false: more than 64 bits. */
static inline bool ljp_number_skip(const uint8_t **p)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  uint64_t word;
  memcpy(&word, *p, sizeof word);
  uint64_t stops = ~word & UINT64_C(0x8080808080808080);
  if (LJP_LIKELY(stops)) {
    *p += (unsigned)(__builtin_ctzll(stops) + 1) / 8;
    return true;
  }
#endif
  uint64_t value;
  const uint8_t *next = ljp_number_long(*p, &value);
  if (next)
    *p = next;
  return next != NULL;
}

#endif
