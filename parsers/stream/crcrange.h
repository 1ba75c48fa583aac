/*
** CRC32C of any range of a buffer, in a time that does not depend on the
** length of the range. Checksums of prefixes are kept every LJP_CRCRANGE_STEP
** bytes; the checksum of a range follows from those of its two ends, because
** CRCs are linear.
**
** Why: after damage, a reader tries every offset that looks like a block.
** Hostile input may have a plausible header every few bytes, each of which
** claims a payload of 1 MiB. Computing each checksum anew would take hours for
** 100 MB of such input.
*/
#ifndef LJP_PARSERS_CRCRANGE_H
#define LJP_PARSERS_CRCRANGE_H

#include <stddef.h>
#include <stdint.h>

#define LJP_CRCRANGE_STEP 1024u

struct ljp_crcrange {
  const uint8_t *base; /* The buffer; the caller's. */
  uint32_t *prefix;    /* [i]: register after i steps; the caller's. */
  size_t known;        /* Valid entries of prefix; 0: none yet. */
};

/* Forgets all prefixes. Must be called when the buffer's bytes have moved. */
static inline void ljp_crcrange_reset(struct ljp_crcrange *range)
{
  range->known = 0;
}

/* Returns ljp_crc32c(0, base + from, len). prefix[] must have room for all
** whole steps up to from + len, and one more. */
uint32_t ljp_crcrange_get(struct ljp_crcrange *range, size_t from, size_t len);

#endif
