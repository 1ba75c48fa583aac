/*
** CRC32C of any range of a buffer in bounded time, however long the range:
** checksums of prefixes are kept every LJP_CRCRANGE_STEP bytes, and that of a
** range is derived from those of its two ends (CRCs are linear).
**
** Why: after damage a reader tries every offset that looks like a block, and
** input may hold a plausible header every few bytes that claims 1 MiB each.
** Summing each claim would turn 100 MB of such input into hours.
*/
#ifndef LJP_PARSERS_CRCRANGE_H
#define LJP_PARSERS_CRCRANGE_H

#include <stddef.h>
#include <stdint.h>

#define LJP_CRCRANGE_STEP 1024u

struct ljp_crcrange {
  const uint8_t *base; /* The buffer; the caller's. */
  uint32_t *prefix;    /* [i]: state after i steps; the caller's. */
  size_t known;        /* Entries of prefix that hold; 0: none yet. */
};

/* Forgets all prefixes: the buffer's bytes have moved. */
static inline void ljp_crcrange_reset(struct ljp_crcrange *range)
{
  range->known = 0;
}

/* ljp_crc32c(0, base + from, len); prefix[] has room for all whole steps up
** to from + len, and one more. */
uint32_t ljp_crcrange_get(struct ljp_crcrange *range, size_t from, size_t len);

#endif
