/*
** What Debian's libgcc_eh.a needs of glibc, for programs for musl. A libgcc that
** was built for musl (Alpine's) needs nothing of this. See cmake/make-musl.
*/
#include <link.h>
#include <pthread.h>
#include <stddef.h>

/* libgcc takes a process for one without threads, and takes no locks, if there is
** no such symbol; musl hides its own. Without locks a program crashes in which two
** threads register frame information, as each VM does for compiled code. Weak,
** because static programs have musl's. */
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
