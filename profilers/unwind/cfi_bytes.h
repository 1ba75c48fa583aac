/*
** Numbers and encoded pointers of call frame information, read by a bounded
** cursor: beyond the end it yields zeros and is bad from then on, so that a
** caller may read several values and ask once.
** Private to profilers/unwind. Safety: everything here is LJP_SIGSAFE.
*/
#ifndef LJP_UNWIND_CFI_BYTES_H
#define LJP_UNWIND_CFI_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/assert.h"
#include "src/base/sigsafe.h"

struct ljp_bytes {
  const uint8_t *at, *end;
  bool bad;
};

LJP_SIGSAFE static inline uint64_t ljp_bytes_fixed(struct ljp_bytes *in,
                                                   unsigned size)
{
  uint64_t value = 0;
  ljp_assert(in->at <= in->end && size <= sizeof value);
  if (in->bad || (size_t)(in->end - in->at) < size) {
    in->bad = true;
    return 0;
  }
  memcpy(&value, in->at, size);
  in->at += size;
  return value;
}

LJP_SIGSAFE static inline uint64_t ljp_bytes_uleb(struct ljp_bytes *in)
{
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    uint8_t byte = (uint8_t)ljp_bytes_fixed(in, 1);
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      return value;
  }
  in->bad = true;
  return 0;
}

LJP_SIGSAFE static inline int64_t ljp_bytes_sleb(struct ljp_bytes *in)
{
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    uint8_t byte = (uint8_t)ljp_bytes_fixed(in, 1);
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) {
      if ((byte & 0x40) && shift + 7 < 64)
        value |= ~UINT64_C(0) << (shift + 7);
      return (int64_t)value;
    }
  }
  in->bad = true;
  return 0;
}

/* A pointer encoded by DW_EH_PE_*. address: where the object has the byte at
** in->at. data: the base of DW_EH_PE_datarel. Indirect pointers and other bases
** make the cursor bad. */
LJP_SIGSAFE uint64_t ljp_bytes_pointer(struct ljp_bytes *in, uint8_t encoding,
                                       uint64_t address, uint64_t data);

#endif
