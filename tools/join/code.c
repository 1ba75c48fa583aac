/*
** The code of a process, by the tables of symbols in its memory: see moment.h.
** Every object that defines malloc counts, and the loader, whose address the
** kernel tells (AT_BASE).
*/
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/join/moment.h"

enum { MOST_SYMBOLS = 1 << 20, MOST_NAMES = 32 << 20, MOST_OBJECTS = 2000 };

/* Functions that take the locks which pthread_create() takes. */
static const char *const code_functions[] = {"malloc",
                                             "calloc",
                                             "realloc",
                                             "free",
                                             "reallocarray",
                                             "memalign",
                                             "aligned_alloc",
                                             "posix_memalign",
                                             "valloc",
                                             "pvalloc",
                                             "malloc_trim",
                                             "mallopt",
                                             "mallinfo",
                                             "mallinfo2",
                                             "malloc_stats",
                                             "malloc_info",
                                             "cfree",
                                             "pthread_create",
                                             "pthread_exit",
                                             "pthread_join",
                                             "pthread_detach",
                                             "pthread_cancel",
                                             "pthread_attr_setstacksize",
                                             "pthread_getattr_np",
                                             "pthread_setattr_default_np",
                                             "fork",
                                             "vfork",
                                             "_Fork",
                                             "__libc_fork",
                                             "exit",
                                             "quick_exit",
                                             "__libc_freeres",
                                             "setuid",
                                             "setgid",
                                             "seteuid",
                                             "setegid",
                                             "setreuid",
                                             "setregid",
                                             "setresuid",
                                             "setresgid",
                                             "setgroups",
                                             "thrd_create",
                                             "posix_spawn",
                                             "posix_spawnp",
                                             "__libc_memalign"};

static void code_add(struct ljp_range *ranges, unsigned *count, uint64_t low,
                     uint64_t high)
{
  if (*count < LJP_MOMENT_RANGES && low < high)
    ranges[(*count)++] = (struct ljp_range){low, high};
}

/* Adds the executable mappings of the file that this mapping belongs to. */
static void code_add_text(struct ljp_range *ranges, unsigned *count,
                          const struct ljp_maps *maps,
                          const struct ljp_mapping *file)
{
  for (size_t i = 0; i < maps->count; i++) {
    const struct ljp_mapping *m = &maps->list[i];
    if (m->execute && m->inode == file->inode && m->device == file->device)
      code_add(ranges, count, m->low, m->high);
  }
}

/* -- Symbols --------------------------------------------------------------- */
struct symbols {
  Elf64_Sym *list;
  size_t count;
  char *names;
  size_t names_bytes;
};

static void *code_copy(pid_t pid, uint64_t at, size_t bytes)
{
  void *copy = bytes ? malloc(bytes) : NULL;
  if (copy && !ljp_memory_read(pid, at, copy, bytes)) {
    free(copy);
    copy = NULL;
  }
  return copy;
}

/* glibc relocates the addresses of the table in memory, others do not. */
static uint64_t code_relocated(const struct ljp_elf *elf, uint64_t at)
{
  return at < elf->base ? elf->base + at : at;
}

/* Nothing says how many symbols there are. But linkers place the table of names
** directly behind them. */
static bool code_symbols(struct symbols *out, pid_t pid,
                         const struct ljp_elf *elf)
{
  enum { MOST_ENTRIES = 512 };
  uint64_t table = 0, names = 0, names_bytes = 0;
  *out = (struct symbols){NULL, 0, NULL, 0};
  for (unsigned i = 0; i < elf->count; i++) {
    const Elf64_Phdr *p = &elf->segment[i];
    Elf64_Dyn entry[MOST_ENTRIES];
    size_t count = p->p_memsz / sizeof *entry;
    count = count < MOST_ENTRIES ? count : MOST_ENTRIES;
    if (p->p_type != PT_DYNAMIC ||
        !ljp_memory_read(pid, elf->base + p->p_vaddr, entry,
                         count * sizeof *entry))
      continue;
    for (size_t k = 0; k < count && entry[k].d_tag != DT_NULL; k++) {
      if (entry[k].d_tag == DT_SYMTAB)
        table = code_relocated(elf, entry[k].d_un.d_ptr);
      else if (entry[k].d_tag == DT_STRTAB)
        names = code_relocated(elf, entry[k].d_un.d_ptr);
      else if (entry[k].d_tag == DT_STRSZ)
        names_bytes = entry[k].d_un.d_val;
    }
  }
  if (!table || names <= table || !names_bytes || names_bytes > MOST_NAMES ||
      (names - table) / sizeof(Elf64_Sym) > MOST_SYMBOLS)
    return false;
  out->count = (names - table) / sizeof(Elf64_Sym);
  out->names_bytes = names_bytes;
  out->list = code_copy(pid, table, out->count * sizeof(Elf64_Sym));
  out->names = code_copy(pid, names, names_bytes);
  return out->list && out->names;
}

static const char *code_name(const struct symbols *s, const Elf64_Sym *symbol)
{
  if (symbol->st_shndx == SHN_UNDEF || !symbol->st_size ||
      symbol->st_name >= s->names_bytes)
    return "";
  const char *name = s->names + symbol->st_name;
  return memchr(name, 0, s->names_bytes - symbol->st_name) ? name : "";
}

static bool code_defines(const struct symbols *s, const char *name)
{
  for (size_t i = 0; i < s->count; i++)
    if (strcmp(code_name(s, &s->list[i]), name) == 0)
      return true;
  return false;
}

static void code_forbid(struct ljp_code *code, const struct symbols *s,
                        uint64_t base)
{
  for (size_t i = 0; i < s->count; i++) {
    const char *name = code_name(s, &s->list[i]);
    for (size_t k = 0; *name && k < sizeof code_functions / sizeof(char *); k++)
      if (strcmp(name, code_functions[k]) == 0)
        code_add(code->forbidden, &code->forbidden_count,
                 base + s->list[i].st_value,
                 base + s->list[i].st_value + s->list[i].st_size);
  }
}

/* -- Where signal handlers return ------------------------------------------ */
static void code_find_restorer(struct ljp_code *code, pid_t pid,
                               const struct ljp_mapping *m)
{
  enum { MOST = 64 << 20 };
  /* mov $15, %rax; syscall */
  static const unsigned char sequence[] = {0x48, 0xc7, 0xc0, 0x0f, 0,
                                           0,    0,    0x0f, 0x05};
  size_t bytes = m->high - m->low;
  if (code->restorer || !m->execute || bytes > MOST)
    return;
  char *text = code_copy(pid, m->low, bytes);
  const char *at = text ? memmem(text, bytes, sequence, sizeof sequence) : NULL;
  if (at)
    code->restorer = m->low + (uint64_t)(at - text);
  free(text);
}

static void code_find_restorer_of(struct ljp_code *code, pid_t pid,
                                  const struct ljp_maps *maps,
                                  const struct ljp_mapping *file)
{
  for (size_t i = 0; i < maps->count; i++)
    if (maps->list[i].inode == file->inode &&
        maps->list[i].device == file->device)
      code_find_restorer(code, pid, &maps->list[i]);
}

/* -- All objects ----------------------------------------------------------- */
static uint64_t code_loader(pid_t pid)
{
  Elf64_auxv_t vector[64];
  char path[64];
  uint64_t base = 0;
  snprintf(path, sizeof path, "/proc/%d/auxv", (int)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, vector, sizeof vector) : 0;
  for (size_t i = 0; n > 0 && i < (size_t)n / sizeof *vector; i++)
    if (vector[i].a_type == AT_BASE)
      base = vector[i].a_un.a_val;
  if (fd >= 0)
    close(fd);
  return base;
}

static bool code_read_memory(void *ctx, uint64_t at, void *to, size_t bytes)
{
  return ljp_memory_read(*(pid_t *)ctx, at, to, bytes);
}

/* Whether the object has libc's functions. */
static bool code_object(struct ljp_code *code, pid_t pid,
                        const struct ljp_maps *maps,
                        const struct ljp_mapping *m, uint64_t loader)
{
  static struct ljp_elf elf;
  const struct ljp_image_memory memory = {code_read_memory, &pid};
  struct symbols symbols;
  bool libc = false;
  if (!ljp_elf_read(&elf, &memory, m->low))
    return false;
  bool good = code_symbols(&symbols, pid, &elf);
  if (good && code_defines(&symbols, "pthread_create")) {
    libc = true;
    code_forbid(code, &symbols, elf.base);
    code_add_text(code->libc, &code->libc_count, maps, m);
    code_find_restorer_of(code, pid, maps, m);
  } else if (good && code_defines(&symbols, "malloc") && m->low != loader) {
    /* Another allocator: its inner functions have no names here, so all its
    ** code counts. But if it is the program, that has other code, too. */
    code_forbid(code, &symbols, elf.base);
    if (m != &maps->list[0])
      code_add_text(code->forbidden, &code->forbidden_count, maps, m);
  }
  /* musl's loader is its libc. */
  if (m->low == loader && !libc)
    code_add_text(code->forbidden, &code->forbidden_count, maps, m);
  free(symbols.list);
  free(symbols.names);
  return libc;
}

void ljp_code_read(struct ljp_code *code, pid_t pid,
                   const struct ljp_maps *maps)
{
  uint64_t loader = code_loader(pid);
  unsigned objects = 0;
  memset(code, 0, sizeof *code);
  code->bare = true;
  for (size_t i = 0; i < maps->count; i++) {
    const struct ljp_mapping *m = &maps->list[i];
    if (!m->offset && m->read && m->inode && objects++ < MOST_OBJECTS &&
        code_object(code, pid, maps, m, loader))
      code->bare = false;
  }
  /* A static program. */
  if (code->bare && maps->count)
    code_find_restorer_of(code, pid, maps, &maps->list[0]);
}
