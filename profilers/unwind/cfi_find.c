/*
** From a code address to its CFI: search the object's sorted index, copy the
** FDE and its CIE out of the object, run them up to the address.
**
** Another thread may unmap the object meanwhile, so the object is read by
** fault-safe copies only.
** Safety: LJP_SIGSAFE throughout.
*/
#include "profilers/unwind/step.h"
#include "src/base/saferead.h"

static bool find_load32(uint64_t address, int32_t *out)
{
  if (address & 3)
    return ljp_safe_copy(out, (const void *)(uintptr_t)address, 4) == 4;
  uint64_t word;
  if (!ljp_safe_load((const void *)(uintptr_t)(address & ~UINT64_C(7)), &word))
    return false;
  *out = (int32_t)(word >> (address & 4) * 8);
  return true;
}

/* Finds the last pair of the index whose code begins at or before pc. *fde: the
** address of its FDE. */
static enum ljp_unwind_result
find_in_index(const struct ljp_unwind_object *object, uint64_t pc,
              uint64_t *fde)
{
  uint64_t low = 0, high = object->index_count;
  int64_t wanted = (int64_t)(pc - object->header);
  int32_t value;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (!find_load32(object->index + 8 * middle, &value))
      return LJP_UNWIND_STALE;
    if (value <= wanted)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0)
    return LJP_UNWIND_NO_RULE;
  if (!find_load32(object->index + 8 * (low - 1) + 4, &value))
    return LJP_UNWIND_STALE;
  *fde = object->header + (uint64_t)(int64_t)value;
  return LJP_UNWIND_STEPPED;
}

/* Copies the CFI entry at an address into the buffer. *cut: it is longer than
** the buffer. */
static enum ljp_unwind_result
find_copy_entry(const struct ljp_unwind_object *object, uint64_t address,
                uint8_t *buffer, size_t room, struct ljp_cfi_span *span,
                uint64_t *cie, bool *cut)
{
  uint64_t size;
  if (address < object->lo || address >= object->hi)
    return LJP_UNWIND_BAD_CFI;
  if (room > object->hi - address)
    room = (size_t)(object->hi - address);
  span->bytes = buffer;
  span->address = address;
  span->size = room < 16 ? room : 16;
  if (ljp_safe_copy(buffer, (const void *)(uintptr_t)address, span->size) !=
      span->size)
    return LJP_UNWIND_STALE;
  if (!ljp_cfi_head(span, &size, cie))
    return LJP_UNWIND_BAD_CFI;
  *cut = size > room;
  size_t done = span->size;
  span->size = *cut ? room : (size_t)size;
  if (span->size > done &&
      ljp_safe_copy(buffer + done, (const void *)(uintptr_t)(address + done),
                    span->size - done) != span->size - done)
    return LJP_UNWIND_STALE;
  return LJP_UNWIND_STEPPED;
}

enum ljp_unwind_result
ljp_unwind_find_cfi(const struct ljp_unwind_object *object, uint64_t pc,
                    struct ljp_cfi_found *found)
{
  struct ljp_cfi_span fde, cie;
  uint64_t at, cie_at, none;
  bool fde_cut, cie_cut;
  enum ljp_unwind_result result;

  if (!object->index_count)
    return LJP_UNWIND_NO_CFI;
  if ((result = find_in_index(object, pc, &at)) ||
      (result = find_copy_entry(object, at, found->fde_bytes, LJP_FDE_MAX, &fde,
                                &cie_at, &fde_cut)))
    return result;
  if (!cie_at)
    return LJP_UNWIND_BAD_CFI;
  if ((result = find_copy_entry(object, cie_at, found->cie_bytes, LJP_CIE_MAX,
                                &cie, &none, &cie_cut)))
    return result;
  if (cie_cut)
    return LJP_UNWIND_TOO_LONG;
  if (!ljp_cfi_read_cie(&found->cie, cie, &found->machine) ||
      !ljp_cfi_read_fde(&found->fde, &found->cie, fde))
    return LJP_UNWIND_BAD_CFI;
  if (pc < found->fde.start || pc >= found->fde.end)
    return LJP_UNWIND_NO_RULE;
  ljp_cfi_start(&found->machine, &found->cie, &found->fde);
  do {
    if (!ljp_cfi_next(&found->machine, &found->fde))
      return fde_cut ? LJP_UNWIND_TOO_LONG : LJP_UNWIND_BAD_CFI;
  } while (found->machine.next <= pc);
  /* The row was cut by the end of the buffer, not by the end of the FDE. */
  if (fde_cut && found->machine.in.at == found->machine.in.end)
    return LJP_UNWIND_TOO_LONG;
  return LJP_UNWIND_STEPPED;
}
