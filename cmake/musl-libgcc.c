/*
** Functions of glibc that Debian's libgcc_eh.a needs, for programs that use musl. A
** libgcc that was built for musl (Alpine's) needs none of them. See
** cmake/make-musl.
*/
#include <link.h>
#include <pthread.h>
#include <stddef.h>

/* If this symbol is missing, libgcc believes that the process has no threads, and
** takes no locks. musl has the function, but hides it in its shared library. Two
** threads that register frame information at once, as VMs do for compiled code,
** then crash the program. The definition is weak because a static program also
** links musl's own. */
__attribute__((weak, visibility("hidden"))) int
__pthread_key_create(pthread_key_t *key, void (*end)(void *))
{
  return pthread_key_create(key, end);
}

/* As glibc declares it. */
struct found_object {
  unsigned long long flags;
  void *start, *end;
  struct link_map *map;
  void *eh_frame;
  unsigned long long reserved[7];
};

struct search {
  ElfW(Addr) address;
  struct found_object *found;
};

static int find_in(struct dl_phdr_info *info, size_t size, void *data)
{
  struct search *search = data;
  struct found_object found = {0};
  int hit = 0;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    ElfW(Addr) start = info->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_GNU_EH_FRAME)
      found.eh_frame = (void *)start;
    if (segment->p_type != PT_LOAD || search->address < start ||
        search->address - start >= segment->p_memsz)
      continue;
    hit = 1;
    found.start = (void *)start;
    found.end = (void *)(start + segment->p_memsz);
  }
  if (!hit || !found.eh_frame)
    return 0;
  *search->found = found;
  return 1;
}

__attribute__((visibility("hidden"))) int
_dl_find_object(void *address, struct found_object *found)
{
  struct search search = {(ElfW(Addr))address, found};
  return dl_iterate_phdr(find_in, &search) ? 0 : -1;
}
