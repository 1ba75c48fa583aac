/*
** What the loader has loaded: a list of objects with their segments, taken from
** dl_iterate_phdr.
** Safety: writer's side; takes the loader's lock.
*/
#include <link.h>
#include <stdlib.h>

#include "profilers/unwind/writer.h"
#include "src/base/loader.h"

#ifdef LJP_DEBUG /* So that growth happens in every test. */
enum { LOADED_FIRST = 1 };
#else
enum { LOADED_FIRST = 64 };
#endif

static bool loaded_grow(void **array, uint32_t count, uint32_t *room,
                        size_t element)
{
  if (count < *room)
    return true;
  uint32_t more = *room ? 2 * *room : LOADED_FIRST;
  void *bigger = realloc(*array, more * element);
  if (!bigger)
    return false;
  *array = bigger;
  *room = more;
  return true;
}

static bool loaded_add_range(struct ljp_unwind_listing *listing, uint64_t lo,
                             uint64_t hi)
{
  if (!loaded_grow((void **)&listing->ranges, listing->ranges_count,
                   &listing->ranges_room, sizeof *listing->ranges))
    return false;
  listing->ranges[listing->ranges_count++] = (struct ljp_unwind_range){
      lo, hi, (struct ljp_unwind_object *)(uintptr_t)listing->modules_count};
  return true;
}

/* Called under the loader's lock, so it only copies numbers and reads no
** object. */
static int loaded_list_one(struct dl_phdr_info *info, size_t size, void *data)
{
  struct ljp_unwind_listing *listing = data;
  struct ljp_unwind_module module = {UINT64_MAX, 0, 0};
  bool ok = loaded_grow((void **)&listing->modules, listing->modules_count,
                        &listing->modules_room, sizeof *listing->modules);
  (void)size;
  listing->counters.adds = info->dlpi_adds;
  listing->counters.subs = info->dlpi_subs;
  for (int i = 0; ok && i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    uint64_t lo = info->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_LOAD && segment->p_memsz) {
      uint64_t hi = lo + segment->p_memsz;
      module.lo = lo < module.lo ? lo : module.lo;
      module.hi = hi > module.hi ? hi : module.hi;
      if (segment->p_flags & PF_X)
        ok = loaded_add_range(listing, lo, hi);
    } else if (segment->p_type == PT_GNU_EH_FRAME)
      module.header = lo;
  }
  if (ok)
    listing->modules[listing->modules_count++] = module;
  listing->out_of_memory = !ok;
  return !ok;
}

static int loaded_count_one(struct dl_phdr_info *info, size_t size, void *data)
{
  struct ljp_unwind_counters *counters = data;
  (void)size;
  counters->adds = info->dlpi_adds;
  counters->subs = info->dlpi_subs;
  return 1;
}

void ljp_unwind_count_loaded(struct ljp_unwind_counters *counters)
{
  ljp_loader_each(loaded_count_one, counters);
}

bool ljp_unwind_list_loaded(struct ljp_unwind_listing *listing)
{
  ljp_loader_each(loaded_list_one, listing);
  return !listing->out_of_memory;
}

void ljp_unwind_listing_fini(struct ljp_unwind_listing *listing)
{
  free(listing->modules);
  free(listing->ranges);
}
