/*
** Integers as the stream has them: little endian words, LEB128 varints, zigzag
** for signed numbers. Writer and readers use it; it has no state. Readers
** accept any encoding of at most 10 bytes, even a padded one.
*/
#ifndef LJP_VARINT_H
#define LJP_VARINT_H

#include <stddef.h>
#include <stdint.h>

#define LJP_VARINT_MAX_BYTES 10

static inline uint64_t ljp_zigzag(int64_t value)
{
  return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static inline int64_t ljp_unzigzag(uint64_t value)
{
  return (int64_t)(value >> 1 ^ (~(value & 1) + 1));
}

/* Most addresses are multiples of 8: rotation makes their deltas 3 bits
** shorter. */
static inline uint64_t ljp_rotate_address(uint64_t address)
{
  return address >> 3 | address << 61;
}

static inline uint64_t ljp_unrotate_address(uint64_t rotated)
{
  return rotated << 3 | rotated >> 61;
}

static inline void ljp_put_u16(uint8_t *p, uint16_t v)
{
  p[0] = (uint8_t)v;
  p[1] = (uint8_t)(v >> 8);
}

static inline void ljp_put_u32(uint8_t *p, uint32_t v)
{
  ljp_put_u16(p, (uint16_t)v);
  ljp_put_u16(p + 2, (uint16_t)(v >> 16));
}

/* The caller has LJP_VARINT_MAX_BYTES of room at p. Returns the end. */
static inline uint8_t *ljp_put_varint(uint8_t *p, uint64_t value)
{
  while (value >= 0x80) {
    *p++ = (uint8_t)(value | 0x80);
    value >>= 7;
  }
  *p++ = (uint8_t)value;
  return p;
}

/* The same, without a branch for each byte if the value is below 2^28: for
** values whose lengths are hard to predict. */
static inline uint8_t *ljp_put_varint_quick(uint8_t *p, uint64_t value)
{
  static const uint32_t more[4] = {0, 0x80, 0x8080, 0x808080};
  if (value >> 28)
    return ljp_put_varint(p, value);
  const uint32_t v = (uint32_t)value;
  const unsigned highest = 31u ^ (unsigned)__builtin_clz(v | 1);
  const unsigned last = highest * 37 >> 8; /* highest / 7 */
  ljp_put_u32(p, more[last] | (v & 0x7f) | (v << 1 & 0x7f00) |
                     (v << 2 & 0x7f0000) | (v << 3 & 0x7f000000));
  return p + last + 1;
}

/* Signed difference a - b, wrapping, as a zigzag varint. */
static inline uint8_t *ljp_put_delta(uint8_t *p, uint64_t a, uint64_t b)
{
  return ljp_put_varint(p, ljp_zigzag((int64_t)(a - b)));
}

/*
** Reads a varint from [p, end). Returns the byte after it, or NULL if it does
** not end before end, is longer than 10 bytes, or exceeds 64 bits.
*/
static inline const uint8_t *ljp_get_varint(const uint8_t *p,
                                            const uint8_t *end, uint64_t *value)
{
  uint64_t v = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (p >= end)
      return NULL;
    uint8_t byte = *p++;
    if (shift == 63 && byte > 1)
      return NULL;
    v |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) {
      *value = v;
      return p;
    }
  }
  return NULL;
}

static inline void ljp_put_u64(uint8_t *p, uint64_t v)
{
  ljp_put_u32(p, (uint32_t)v);
  ljp_put_u32(p + 4, (uint32_t)(v >> 32));
}

static inline uint16_t ljp_get_u16(const uint8_t *p)
{
  return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t ljp_get_u32(const uint8_t *p)
{
  return (uint32_t)ljp_get_u16(p) | (uint32_t)ljp_get_u16(p + 2) << 16;
}

static inline uint64_t ljp_get_u64(const uint8_t *p)
{
  return (uint64_t)ljp_get_u32(p) | (uint64_t)ljp_get_u32(p + 4) << 32;
}

#endif
