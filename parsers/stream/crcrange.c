/*
** Checksums of ranges. Let R(x) be the CRC register after the bytes x, from
** the initial value 0. Then R(ab) = shift(R(a), |b|) ^ R(b), where shift
** multiplies by x^(8|b|) modulo the polynomial. So R of a range follows from R
** of two prefixes. One thread a struct.
*/
#include "parsers/stream/crcrange.h"

#include "src/base/assert.h"
#include "src/base/crc32c.h"

#define POLYNOMIAL 0x82f63b78u /* Reflected: bit 31 is x^0. */

/* a * b modulo the polynomial. */
static uint32_t crcrange_multiply(uint32_t a, uint32_t b)
{
  uint32_t product = 0;
  for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
    product ^= b & -(uint32_t) !!(a & bit);
    b = b >> 1 ^ (POLYNOMIAL & -(b & 1));
  }
  return product;
}

/* crc * x^(8 bytes), by repeated squaring of x^8. */
static uint32_t crcrange_shift(uint32_t crc, size_t bytes)
{
  uint32_t power = 1u << 23; /* x^8 */
  for (; bytes; bytes >>= 1) {
    if (bytes & 1)
      crc = crcrange_multiply(power, crc);
    power = crcrange_multiply(power, power);
  }
  return crc;
}

/* The register after n more bytes. */
static uint32_t crcrange_feed(uint32_t reg, const uint8_t *p, size_t n)
{
  return ~ljp_crc32c(~reg, p, n);
}

/* R of the buffer's first `end` bytes. */
static uint32_t crcrange_prefix(struct ljp_crcrange *range, size_t end)
{
  size_t step = end / LJP_CRCRANGE_STEP;
  ljp_assert(range->base && range->prefix);
  if (range->known == 0) {
    range->prefix[0] = 0;
    range->known = 1;
  }
  for (; range->known <= step; range->known++)
    range->prefix[range->known] =
        crcrange_feed(range->prefix[range->known - 1],
                      range->base + (range->known - 1) * LJP_CRCRANGE_STEP,
                      LJP_CRCRANGE_STEP);
  return crcrange_feed(range->prefix[step],
                       range->base + step * LJP_CRCRANGE_STEP,
                       end % LJP_CRCRANGE_STEP);
}

uint32_t ljp_crcrange_get(struct ljp_crcrange *range, size_t from, size_t len)
{
  uint32_t before = crcrange_prefix(range, from);
  return ~(crcrange_prefix(range, from + len) ^
           crcrange_shift(before ^ UINT32_MAX, len));
}
