/*
** Fault-safe loads of the VM's memory. LJP_SIGSAFE throughout. "Noted" loads
** also put what they read into a memo (src/base/memo.h): once a walk has passed
** a point of the memo, the rest of the walk depends on these words.
*/
#ifndef LJP_LOAD_H
#define LJP_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/memo.h"
#include "src/base/saferead.h"

LJP_SIGSAFE static inline bool ljp_load(uint64_t address, uint64_t *out)
{
  return ljp_safe_load((const void *)(uintptr_t)address, out);
}

LJP_SIGSAFE static inline bool ljp_load_noted(uint64_t address, uint64_t *out,
                                              struct ljp_memo *notes)
{
  if (!ljp_load(address, out))
    return false;
  ljp_memo_note(notes, address, *out);
  return true;
}

/* The 32 bits at a 4-byte aligned address. */
LJP_SIGSAFE static inline bool ljp_load32(uint64_t address, uint32_t *out)
{
  uint64_t word;
  if (!ljp_load(address & ~UINT64_C(7), &word))
    return false;
  *out = (uint32_t)(word >> (address & 4) * 8);
  return true;
}

LJP_SIGSAFE static inline bool ljp_load_bytes(void *to, uint64_t from,
                                              size_t size)
{
  return ljp_safe_copy(to, (const void *)(uintptr_t)from, size) == size;
}

#endif
