/*
** An object's .eh_frame_hdr: where its .eh_frame is, and the sorted index of
** it, if there is one. Read by fault-safe copies, from the writer and from the
** handler (fresh.c).
** Safety: LJP_SIGSAFE throughout.
*/
#include "profilers/unwind/cfi.h"
#include "profilers/unwind/dwarf.h"
#include "profilers/unwind/map.h"
#include "src/base/saferead.h"

enum { HEADER_MAX_ENTRIES = 1 << 26 };

bool ljp_unwind_read_header(struct ljp_unwind_object *object)
{
  uint8_t bytes[40];
  uint64_t header = object->header;
  size_t size = sizeof bytes;
  if (header < object->lo || header >= object->hi || (header & 3))
    return false;
  if (size > object->hi - header)
    size = (size_t)(object->hi - header);
  size = ljp_safe_copy(bytes, (const void *)(uintptr_t)header, size);
  struct ljp_bytes in = {bytes, bytes + size, false};
  if (ljp_bytes_fixed(&in, 1) != 1)
    return false;
  uint8_t frames = (uint8_t)ljp_bytes_fixed(&in, 1);
  uint8_t count = (uint8_t)ljp_bytes_fixed(&in, 1);
  uint8_t table = (uint8_t)ljp_bytes_fixed(&in, 1);
  if (frames != DW_EH_PE_omit)
    object->frames = ljp_bytes_pointer(
        &in, frames, header + (uint64_t)(in.at - bytes), header);
  if (in.bad || object->frames < object->lo || object->frames >= object->hi)
    object->frames = 0;
  if (in.bad || count == DW_EH_PE_omit ||
      table != (DW_EH_PE_datarel | DW_EH_PE_sdata4))
    return object->frames != 0;
  uint64_t entries =
      ljp_bytes_pointer(&in, count, header + (uint64_t)(in.at - bytes), header);
  uint64_t index = header + (uint64_t)(in.at - bytes);
  if (!in.bad && entries < HEADER_MAX_ENTRIES &&
      8 * entries <= object->hi - index) {
    object->index = index;
    object->index_count = entries;
  }
  return object->frames != 0 || object->index_count != 0;
}
