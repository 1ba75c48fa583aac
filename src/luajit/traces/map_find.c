/*
** Finding the trace that an address lies in; map.c keeps the map, trace.h has
** the picture.
**
** The interrupted thread itself changes the map, in such an order that each
** state that a handler can see is valid. Still everything is read fault-safely,
** and bounds are checked before they are used.
** LJP_SIGSAFE throughout.
*/
#define LUA_CORE

#include "lj_obj.h"

#include "src/luajit/traces/trace.h"
#include "src/luajit/vm/load.h"
#include "src/luajit/vm/vms.h"

LJP_SIGSAFE static bool map_find_area(const struct ljp_vm *vm, uint64_t rip,
                                      struct ljp_code_area *area)
{
  uint64_t map;
  uint32_t low = 0, high;
  if (!vm->jit)
    return false;
  /* Acquire: what the map leads to is complete. */
  map = (uint64_t)(uintptr_t)atomic_load_explicit(&vm->jit->map,
                                                  memory_order_acquire);
  if (!map || !ljp_load32(map, &high))
    return false;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    if (!ljp_load_bytes(area,
                        map + offsetof(struct ljp_code_map, area) +
                            mid * sizeof *area,
                        sizeof *area))
      return false;
    if (rip - area->low < area->high - area->low)
      return true;
    if (area->low > rip)
      high = mid;
    else
      low = mid + 1;
  }
  return false;
}

bool ljp_trace_area(const struct ljp_vm *vm, uint64_t rip)
{
  struct ljp_code_area area;
  return map_find_area(vm, rip, &area);
}

bool ljp_trace_find(const struct ljp_vm *vm, uint64_t rip,
                    struct ljp_trace *trace)
{
  struct ljp_code_area area;
  struct ljp_code_range range;
  if (!map_find_area(vm, rip, &area))
    return false;
  uint64_t ranges = (uint64_t)(uintptr_t)area.ranges;
  uint32_t low = 0, high, offset = (uint32_t)(rip - area.low);
  if (!ranges || !ljp_load32(ranges, &high))
    return false;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    if (!ljp_load_bytes(&range,
                        ranges + offsetof(struct ljp_code_ranges, range) +
                            mid * sizeof range,
                        sizeof range))
      return false;
    if (offset - range.start < range.bytes) {
      return range.trace &&
             ljp_load_bytes(trace, (uint64_t)(uintptr_t)range.trace,
                            sizeof *trace) &&
             trace->object && rip - trace->code < trace->code_bytes;
    }
    if (range.start > offset)
      low = mid + 1; /* the later the lower */
    else
      high = mid;
  }
  return false;
}
