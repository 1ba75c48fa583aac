/*
** See elf_functions.h. Files are read with pread(), and nothing in them is
** trusted: each offset and each size is checked against the file's.
*/
#include "src/writer/elf_functions.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/open_file.h"

enum { NOTE_BYTES = 4096, SYMBOLS_AT_ONCE = 256, MAX_SECTIONS = 4096 };

struct elf_file {
  int fd;
  uint64_t bytes;
  Elf64_Shdr *sections;
  unsigned count;
};

/* -- The file -------------------------------------------------------------- */

static bool elf_read(const struct elf_file *f, void *out, size_t len,
                     uint64_t offset)
{
  uint8_t *p = out;
  if (offset > f->bytes || len > f->bytes - offset)
    return false;
  while (len) {
    ssize_t n = pread(f->fd, p, len, (off_t)offset);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    p += n;
    len -= (size_t)n;
    offset += (size_t)n;
  }
  return true;
}

static bool elf_read_sections(struct elf_file *f)
{
  static const unsigned char ident[] = {ELFMAG0, ELFMAG1,    ELFMAG2,
                                        ELFMAG3, ELFCLASS64, ELFDATA2LSB};
  Elf64_Ehdr head;
  if (!elf_read(f, &head, sizeof head, 0) ||
      memcmp(head.e_ident, ident, sizeof ident) != 0 ||
      head.e_machine != EM_X86_64 || head.e_shentsize != sizeof(Elf64_Shdr) ||
      !head.e_shnum || head.e_shnum > MAX_SECTIONS)
    return false;
  f->sections = malloc(head.e_shnum * sizeof *f->sections);
  f->count = head.e_shnum;
  return f->sections &&
         elf_read(f, f->sections, f->count * sizeof *f->sections, head.e_shoff);
}

static bool elf_open(struct elf_file *f, const char *path)
{
  struct stat st;
  *f = (struct elf_file){
      .fd = ljp_fd_not_standard(
          open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK))};
  if (f->fd < 0)
    return false;
  if (fstat(f->fd, &st) || !S_ISREG(st.st_mode))
    return false;
  f->bytes = (uint64_t)st.st_size;
  return elf_read_sections(f);
}

static void elf_close(struct elf_file *f)
{
  free(f->sections);
  if (f->fd >= 0)
    close(f->fd);
}

/* Whether the file's build id is the module's. */
static bool elf_is_same(const struct elf_file *f,
                        const struct ljp_module *module)
{
  uint8_t notes[NOTE_BYTES];
  if (!module->build_id_len)
    return true;
  for (unsigned i = 0; i < f->count; i++) {
    const Elf64_Shdr *s = &f->sections[i];
    const size_t whole = sizeof(Elf64_Nhdr) + 4 + module->build_id_len;
    Elf64_Nhdr note;
    if (s->sh_type != SHT_NOTE || s->sh_size < whole ||
        s->sh_size > sizeof notes ||
        !elf_read(f, notes, (size_t)s->sh_size, s->sh_offset))
      continue;
    for (size_t at = 0; at + whole <= s->sh_size; at += 4) {
      memcpy(&note, notes + at, sizeof note);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          note.n_descsz == module->build_id_len &&
          !memcmp(notes + at + sizeof note, "GNU", 4) &&
          !memcmp(notes + at + sizeof note + 4, module->build_id,
                  module->build_id_len))
        return true;
    }
  }
  return false;
}

/* -- Symbols --------------------------------------------------------------- */

/* NULL: the file has no symbols. */
static const Elf64_Shdr *elf_symbols(const struct elf_file *f)
{
  const Elf64_Shdr *found = NULL;
  for (unsigned i = 0; i < f->count; i++) {
    const Elf64_Shdr *s = &f->sections[i];
    if (s->sh_type == SHT_SYMTAB ||
        (s->sh_type == SHT_DYNSYM && (!found || found->sh_type != SHT_SYMTAB)))
      found = s;
  }
  if (found &&
      (found->sh_entsize != sizeof(Elf64_Sym) || found->sh_link >= f->count))
    return NULL;
  return found;
}

static void elf_take_symbol(struct ljp_elf_module *m, const Elf64_Sym *s,
                            size_t names)
{
  const unsigned type = ELF64_ST_TYPE(s->st_info);
  if ((type != STT_FUNC && type != STT_GNU_IFUNC) || s->st_shndx == SHN_UNDEF ||
      s->st_value > UINT32_MAX || s->st_size > UINT32_MAX ||
      s->st_name >= names || !m->names[s->st_name])
    return;
  m->functions[m->count++] = (struct ljp_elf_function){
      .start = (uint32_t)s->st_value,
      .size = (uint32_t)s->st_size,
      .name = s->st_name,
      .rank = (uint32_t)(ELF64_ST_BIND(s->st_info) != STB_GLOBAL) << 24 |
              (uint32_t)(m->names[s->st_name] == '_') << 23};
}

static int elf_by_start(const void *a, const void *b)
{
  const struct ljp_elf_function *x = a, *y = b;
  if (x->start != y->start)
    return x->start < y->start ? -1 : 1;
  return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static bool elf_take_symbols(const struct elf_file *f, const Elf64_Shdr *s,
                             struct ljp_elf_module *m, size_t names)
{
  Elf64_Sym symbols[SYMBOLS_AT_ONCE] = {{0}};
  uint64_t left = s->sh_size / sizeof *symbols, at = s->sh_offset;
  while (left) {
    const size_t n = left < SYMBOLS_AT_ONCE ? (size_t)left : SYMBOLS_AT_ONCE;
    if (!elf_read(f, symbols, n * sizeof *symbols, at))
      return false;
    for (size_t i = 0; i < n; i++)
      elf_take_symbol(m, &symbols[i], names);
    left -= n;
    at += n * sizeof *symbols;
  }
  return true;
}

static bool elf_read_functions(const struct elf_file *f,
                               struct ljp_elf_module *m, size_t room)
{
  const Elf64_Shdr *s = elf_symbols(f);
  if (!s)
    return false;
  const Elf64_Shdr *text = &f->sections[s->sh_link];
  if (s->sh_size > room || text->sh_size > room || !text->sh_size ||
      s->sh_size > f->bytes || text->sh_size > f->bytes)
    return false;
  const size_t most = (size_t)s->sh_size / sizeof(Elf64_Sym);
  const size_t names = (size_t)text->sh_size;
  if (most * sizeof *m->functions + names > room)
    return false;
  m->functions = malloc(most * sizeof *m->functions);
  m->names = malloc(names);
  if (!m->functions || !m->names ||
      !elf_read(f, m->names, names, text->sh_offset))
    return false;
  m->names[names - 1] = '\0';
  if (!elf_take_symbols(f, s, m, names))
    return false;
  struct ljp_elf_function *fitting =
      realloc(m->functions, m->count * sizeof *m->functions + 1);
  if (fitting)
    m->functions = fitting;
  m->bytes = m->count * sizeof *m->functions + names;
  qsort(m->functions, m->count, sizeof *m->functions, elf_by_start);
  return true;
}

/* -- Modules --------------------------------------------------------------- */

static void elf_forget(struct ljp_elf_module *m)
{
  free(m->functions);
  free(m->names);
  m->functions = NULL;
  m->names = NULL;
  m->count = 0;
  m->bytes = 0;
}

static void elf_read_module(struct ljp_elf_module *m,
                            const struct ljp_module *module, size_t room)
{
  struct elf_file f = {.fd = -1};
  if (module->path[0] != '/')
    return;
  if (!elf_open(&f, module->path) || !elf_is_same(&f, module) ||
      !elf_read_functions(&f, m, room))
    elf_forget(m);
  elf_close(&f);
}

static struct ljp_elf_module *elf_find(const struct ljp_elf_modules *m,
                                       uint32_t id)
{
  for (size_t i = 0; i < m->count; i++)
    if (m->list[i].id == id)
      return &m->list[i];
  return NULL;
}

static struct ljp_elf_module *elf_add(struct ljp_elf_modules *m, uint32_t id)
{
  if (m->count == m->capacity) {
    const size_t capacity = m->capacity ? 2 * m->capacity : 16;
    void *grown = realloc(m->list, capacity * sizeof *m->list);
    if (!grown)
      return NULL;
    m->list = grown;
    m->capacity = capacity;
  }
  m->list[m->count] = (struct ljp_elf_module){.id = id};
  return &m->list[m->count++];
}

void ljp_elf_modules_update(struct ljp_elf_modules *m,
                            const struct ljp_modules *modules)
{
  size_t kept = 0;
  for (size_t i = 0; i < m->count; i++)
    m->list[i].seen = false;
  for (size_t i = 0; i < modules->count; i++) {
    const struct ljp_module *module = &modules->list[i];
    struct ljp_elf_module *known = elf_find(m, module->id);
    if (!known && !module->gone_ns && (known = elf_add(m, module->id))) {
      elf_read_module(known, module, LJP_ELF_MAX_BYTES - m->bytes);
      m->bytes += known->bytes;
    }
    if (known)
      known->seen = true;
  }
  for (size_t i = 0; i < m->count; i++) {
    if (m->list[i].seen) {
      m->list[kept++] = m->list[i];
    } else {
      m->bytes -= m->list[i].bytes;
      elf_forget(&m->list[i]);
    }
  }
  m->count = kept;
}

void ljp_elf_modules_fini(struct ljp_elf_modules *m)
{
  for (size_t i = 0; i < m->count; i++)
    elf_forget(&m->list[i]);
  free(m->list);
  memset(m, 0, sizeof *m);
}

const char *ljp_elf_modules_name(const struct ljp_elf_modules *m, uint32_t id,
                                 uint64_t offset)
{
  const struct ljp_elf_module *module = elf_find(m, id);
  size_t low = 0, high = module ? module->count : 0;
  while (low < high) {
    const size_t mid = (low + high) / 2;
    if (module->functions[mid].start <= offset)
      low = mid + 1;
    else
      high = mid;
  }
  if (low == 0)
    return NULL;
  /* Several functions may begin there; the best one is first. */
  const struct ljp_elf_function *f = &module->functions[low - 1];
  while (f > module->functions && f[-1].start == f->start)
    f--;
  for (; f < module->functions + low; f++)
    if (offset == f->start || offset - f->start < f->size)
      return module->names + f->name;
  return NULL;
}
