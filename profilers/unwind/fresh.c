/*
** Objects that no map knows yet: they were loaded a moment ago, and the writer
** has not had its turn. glibc (2.35 and later) can say, even in a signal
** handler, where such an object's frame information is. It is then interpreted,
** like the CFI of any object without a table. With an older glibc and with musl
** the stack is cut there until the writer's next round, which is asked for at once.
** The recorder of allocations waits for that round (profilers/memory/walk.c).
** Safety: LJP_SIGSAFE throughout.
*/
#include <dlfcn.h>

#include "profilers/unwind/map.h"

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
