/*
** What the handler reads of the table of traces: which trace an address lies
** in, and the mark there. traces.h has the picture.
**
** The table is changed by the thread that is interrupted, in an order in which
** each state that a handler can see is a true one. Still everything is read
** fault-safely and bounds are checked before they are used.
** LJP_SIGSAFE throughout.
*/
#include "src/luajit/traces.h"

#include "src/luajit/guest_frames.h"

LJP_SIGSAFE static bool copy(void *to, uint64_t from, size_t size)
{
  return ljp_safe_copy(to, (const void *)(uintptr_t)from, size) == size;
}

LJP_SIGSAFE static bool find_area(const struct ljp_vm *vm, uint64_t rip,
                                  struct ljp_code_area *area)
{
  uint64_t map;
  uint32_t low = 0, high;
  if (!vm->jit)
    return false;
  /* Acquire: what it leads to was complete before. */
  map = (uint64_t)(uintptr_t)atomic_load_explicit(&vm->jit->map,
                                                  memory_order_acquire);
  if (!map || !ljp_load32(map, &high))
    return false;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    if (!copy(area,
              map + offsetof(struct ljp_code_map, area) + mid * sizeof *area,
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
  return find_area(vm, rip, &area);
}

bool ljp_trace_find(const struct ljp_vm *vm, uint64_t rip,
                    struct ljp_trace *trace)
{
  struct ljp_code_area area;
  struct ljp_code_range range;
  if (!find_area(vm, rip, &area))
    return false;
  uint64_t ranges = (uint64_t)(uintptr_t)area.ranges;
  uint32_t low = 0, high, offset = (uint32_t)(rip - area.low);
  if (!ranges || !ljp_load32(ranges, &high))
    return false;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    if (!copy(&range,
              ranges + offsetof(struct ljp_code_ranges, range) +
                  mid * sizeof range,
              sizeof range))
      return false;
    if (offset - range.start < range.bytes) {
      return range.trace &&
             copy(trace, (uint64_t)(uintptr_t)range.trace, sizeof *trace) &&
             trace->object && rip - trace->code < trace->code_bytes;
    }
    if (range.start > offset)
      low = mid + 1; /* the later the lower */
    else
      high = mid;
  }
  return false;
}

/* Bytes of the marks, read a word at a time. */
struct bytes {
  uint64_t at, end, have, word;
};

LJP_SIGSAFE static bool next_varint(struct bytes *from, uint32_t *value)
{
  uint32_t v = 0;
  for (unsigned shift = 0; shift < 35; shift += 7) {
    if (from->at >= from->end)
      return false;
    uint64_t at = from->at & ~UINT64_C(7);
    if (at != from->have) {
      if (!ljp_load(at, &from->word))
        return false;
      from->have = at;
    }
    uint32_t byte = (uint32_t)(from->word >> (from->at & 7) * 8) & 0xff;
    from->at++;
    v |= (byte & 0x7f) << shift;
    if (!(byte & 0x80)) {
      *value = v;
      return true;
    }
  }
  return false;
}

bool ljp_trace_mark(const struct ljp_trace *trace, uint32_t offset,
                    uint32_t *chain, uint32_t *line)
{
  struct ljp_marks marks;
  uint64_t head = (uint64_t)(uintptr_t)trace->marks;
  uint32_t at = 0, code, now = 0, delta;
  int64_t where = 0;
  bool found = false;
  if (!head || !copy(&marks, head, sizeof marks) ||
      marks.chains > LJP_CHAINS_MAX)
    return false;
  struct bytes from = {.at = head + sizeof marks +
                             marks.chains * sizeof(struct ljp_chain)};
  from.end = from.at + marks.bytes;
  while (next_varint(&from, &delta)) {
    if (delta > offset - at)
      break; /* begins behind the offset */
    at += delta;
    if (!next_varint(&from, &code) || ((code & 1) && !next_varint(&from, &now)))
      return false;
    code >>= 1;
    where += (int64_t)(code >> 1) ^ -(int64_t)(code & 1);
    found = true;
  }
  *chain = now;
  *line = (uint32_t)where;
  return found && now;
}

bool ljp_trace_chain(const struct ljp_trace *trace, uint32_t number,
                     struct ljp_chain *chain)
{
  uint64_t head = (uint64_t)(uintptr_t)trace->marks;
  uint32_t chains;
  return head && number && ljp_load32(head, &chains) && number <= chains &&
         copy(chain,
              head + sizeof(struct ljp_marks) + (number - 1) * sizeof *chain,
              sizeof *chain);
}
