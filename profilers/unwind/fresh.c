/*
** Objects that no view knows yet: loaded a moment ago, and the writer has not
** had its turn. glibc (2.35 and later) tells in a signal handler where an object's
** frame information is; it is then interpreted, as that of any object without a
** table. Where glibc does not, the stack is cut there until the next round.
**
** LJP_SIGSAFE throughout.
*/
#include <dlfcn.h>

#include "profilers/unwind/priv.h"
#include "src/base/saferead.h"

enum { MAX_INDEX = 1 << 26 };

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
  if (frames != LJP_PE_OMIT)
    object->frames = ljp_bytes_pointer(
        &in, frames, header + (uint64_t)(in.at - bytes), header);
  if (in.bad || object->frames < object->lo || object->frames >= object->hi)
    object->frames = 0;
  if (in.bad || count == LJP_PE_OMIT ||
      table != (LJP_PE_DATAREL | LJP_PE_SDATA4))
    return object->frames != 0;
  uint64_t entries =
      ljp_bytes_pointer(&in, count, header + (uint64_t)(in.at - bytes), header);
  uint64_t index = header + (uint64_t)(in.at - bytes);
  if (!in.bad && entries < MAX_INDEX && 8 * entries <= object->hi - index) {
    object->index = index;
    object->index_count = entries;
  }
  return object->frames != 0 || object->index_count != 0;
}

bool ljp_unwind_find_fresh(ljp_unwind_finder *finder, uint64_t pc,
                           struct ljp_unwind_object *object)
{
#ifdef DLFO_EH_SEGMENT_TYPE
  struct dl_find_object found;
  if (!finder || finder((void *)(uintptr_t)pc, &found) || !found.dlfo_eh_frame)
    return false;
  object->lo = (uint64_t)(uintptr_t)found.dlfo_map_start;
  object->hi = (uint64_t)(uintptr_t)found.dlfo_map_end;
  object->header = (uint64_t)(uintptr_t)found.dlfo_eh_frame;
  object->frames = object->index = object->index_count = 0;
  return object->lo <= pc && pc < object->hi &&
         ljp_unwind_read_header(object) && object->index_count;
#else
  (void)finder;
  (void)pc;
  (void)object;
  return false;
#endif
}
