/*
** Names of the machine code in stacks. The files and their build-ids are found in
** the process's memory; parsers/symbols reads the files, which it does not trust.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/join/find.h"
#include "tools/stacks/stacks.h"

struct module {
  uint64_t device, inode, low;
  uint64_t base;   /* what is added to addresses of the file */
  uint32_t number; /* of ljp_symbols_module(); 0: none */
};

struct names {
  pid_t pid;
  struct ljp_maps maps;
  struct ljp_symbols *symbols;
  struct module *modules; /* as many as mappings at most */
  size_t count;
};

static bool names_read(void *ctx, uint64_t at, void *to, size_t bytes)
{
  return ljp_memory_read(*(pid_t *)ctx, at, to, bytes);
}

/* The number of bytes from the first loaded one to the last. */
static uint64_t names_span(const struct ljp_elf *elf)
{
  uint64_t low = UINT64_MAX, high = 0;
  for (unsigned i = 0; i < elf->count; i++) {
    const Elf64_Phdr *p = &elf->segment[i];
    if (p->p_type != PT_LOAD)
      continue;
    low = p->p_vaddr < low ? p->p_vaddr : low;
    high = p->p_vaddr + p->p_memsz > high ? p->p_vaddr + p->p_memsz : high;
  }
  return high > low ? high - low : 0;
}

static void names_open(struct names *n, struct module *m, const char *path)
{
  static struct ljp_elf elf;
  const struct ljp_image_memory memory = {names_read, &n->pid};
  unsigned char id[LJP_BUILD_ID_BYTES];
  if (!ljp_elf_read(&elf, &memory, m->low))
    return;
  size_t length = ljp_elf_build_id(&elf, &memory, id);
  m->base = elf.base;
  m->number = ljp_symbols_module(n->symbols, ljp_str(path, strlen(path)),
                                 ljp_str((const char *)id, length),
                                 names_span(&elf), 0);
}

/* The module of an address. NULL: it is in no file. */
static const struct module *names_module(struct names *n, uint64_t address,
                                         const char **path)
{
  const struct ljp_mapping *at = ljp_maps_at(&n->maps, address), *first = at;
  if (!at || !at->inode || !at->path)
    return NULL;
  *path = at->path;
  while (first > n->maps.list && first->offset &&
         (first[-1].inode == at->inode || !first[-1].inode))
    first--;
  if (first->offset || first->inode != at->inode)
    return NULL;
  for (size_t i = 0; i < n->count; i++)
    if (n->modules[i].low == first->low)
      return &n->modules[i];
  struct module *m = &n->modules[n->count++];
  *m = (struct module){.device = at->device,
                       .inode = at->inode,
                       .low = first->low,
                       .base = first->low};
  names_open(n, m, at->path);
  return m;
}

/* The address of a frame's instruction; 0: the line is no machine code. */
static uint64_t names_address(const struct ljp_stacks_text_line *line)
{
  if (line->kind == LJP_STACKS_C)
    return line->number[0];
  if (line->kind != LJP_STACKS_HOST)
    return 0;
  return line->number[0] - (line->number[1] ? 0 : 1);
}

static void names_want(struct names *n, struct ljp_stacks_text_line *line)
{
  uint64_t address = names_address(line);
  const char *path, *slash;
  const struct module *m = address ? names_module(n, address, &path) : NULL;
  if (!address)
    return;
  if (!m) {
    snprintf(line->place, sizeof line->place, "0x%llx",
             (unsigned long long)address);
    return;
  }
  slash = strrchr(path, '/');
  snprintf(line->place, sizeof line->place, "%.50s+0x%llx",
           slash ? slash + 1 : path, (unsigned long long)(address - m->base));
  if (m->number)
    ljp_symbols_want(n->symbols, m->number, address - m->base);
}

static void names_get(struct names *n, struct ljp_stacks_text_line *line)
{
  uint64_t address = names_address(line);
  const char *path;
  const struct module *m = address ? names_module(n, address, &path) : NULL;
  if (!m || !m->number)
    return;
  line->symbol = ljp_symbols_get(n->symbols, m->number, address - m->base);
  if (line->symbol && !line->symbol->count)
    line->symbol = NULL;
}

struct ljp_symbols *ljp_stacks_name(struct ljp_stacks_lines *lines, pid_t pid)
{
  struct names n = {.pid = pid, .symbols = ljp_symbols_new(NULL)};
  if (!n.symbols)
    return NULL;
  if (!pid || ljp_maps_read(&n.maps, pid))
    n.maps = (struct ljp_maps){0};
  n.modules = calloc(n.maps.count + 1, sizeof *n.modules);
  for (size_t i = 0; n.modules && i < lines->count; i++)
    names_want(&n, &lines->list[i]);
  if (n.modules && !ljp_symbols_resolve(n.symbols))
    for (size_t i = 0; i < lines->count; i++)
      names_get(&n, &lines->list[i]);
  free(n.modules);
  ljp_maps_free(&n.maps);
  return n.symbols;
}
