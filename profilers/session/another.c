/*
** Looks LuaJIT's own function up in each loaded object, by the object's hash
** table. The loader's lock keeps the objects there meanwhile. See another.h.
*/
#include "profilers/session/another.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/loader.h"

/* Lua does not have it. */
static const char another_function[] = "luaJIT_setmode";

struct another_search {
  char *path;
  size_t room;
};

/* What an object says of its symbols. NULL: nothing. */
struct another_symbols {
  const ElfW(Sym) * table;
  const char *names;
  const uint32_t *gnu_hash, *hash;
};

static bool another_holds(const struct dl_phdr_info *info, const void *at)
{
  uintptr_t address = (uintptr_t)at;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    if (segment->p_type == PT_LOAD &&
        address - info->dlpi_addr - segment->p_vaddr < segment->p_memsz)
      return true;
  }
  return false;
}

/* The loader has relocated the pointers in place, or (musl; where the section
** is read-only) has not. */
static const void *another_pointer(const struct dl_phdr_info *info,
                                   ElfW(Addr) at)
{
  return (const void *)(at < info->dlpi_addr ? at + info->dlpi_addr : at);
}

static void another_read(struct another_symbols *s,
                         const struct dl_phdr_info *info)
{
  const ElfW(Dyn) *d = NULL;
  memset(s, 0, sizeof *s);
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
      d = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
  for (; d && d->d_tag != DT_NULL; d++) {
    const void *at = another_pointer(info, d->d_un.d_ptr);
    if (d->d_tag == DT_SYMTAB)
      s->table = at;
    else if (d->d_tag == DT_STRTAB)
      s->names = at;
    else if (d->d_tag == DT_GNU_HASH)
      s->gnu_hash = at;
    else if (d->d_tag == DT_HASH)
      s->hash = at;
  }
}

static bool another_is(const struct another_symbols *s, uint32_t symbol)
{
  const ElfW(Sym) *found = &s->table[symbol];
  return found->st_shndx != SHN_UNDEF &&
         strcmp(s->names + found->st_name, another_function) == 0;
}

/* The table: number of buckets, first symbol, 64-bit words of the filter, its
** shift; filter, buckets, and a hash for each symbol, odd at a bucket's end. */
static bool another_in_gnu_hash(const struct another_symbols *s)
{
  const uint32_t *head = s->gnu_hash, *buckets = head + 4 + 2 * head[2];
  const uint32_t *hashes = buckets + head[0];
  uint32_t wanted = 5381;
  for (const char *p = another_function; *p; p++)
    wanted = wanted * 33 + (unsigned char)*p;
  uint32_t symbol = head[0] ? buckets[wanted % head[0]] : 0;
  for (; symbol && symbol >= head[1]; symbol++) {
    uint32_t hash = hashes[symbol - head[1]];
    if ((hash | 1) == (wanted | 1) && another_is(s, symbol))
      return true;
    if (hash & 1)
      break;
  }
  return false;
}

static bool another_defines(const struct dl_phdr_info *info)
{
  struct another_symbols s;
  another_read(&s, info);
  if (!s.table || !s.names)
    return false;
  if (s.gnu_hash)
    return another_in_gnu_hash(&s);
  for (uint32_t i = 0; s.hash && i < s.hash[1]; i++)
    if (another_is(&s, i))
      return true;
  return false;
}

static int another_look(struct dl_phdr_info *info, size_t size, void *ctx)
{
  struct another_search *search = ctx;
  (void)size;
  if (another_holds(info, another_function) || !another_defines(info))
    return 0;
  snprintf(search->path, search->room, "%s", info->dlpi_name);
  return 1;
}

bool ljp_another_luajit(char *path, size_t room)
{
  struct another_search search = {path, room};
  if (ljp_loader_lost() || !ljp_loader_each(another_look, &search))
    return false;
  if (!*path) { /* the program itself */
    ssize_t n = readlink("/proc/self/exe", path, room - 1);
    path[n > 0 ? n : 0] = '\0';
  }
  return *path;
}
