/*
** See image.h. A LuaJIT that is linked in is found by the names of functions,
** which a stripped program still has if it exports them. Ours has a note, which
** strip keeps (profilers/join/entry.c).
**
** All reads are bounded: a file with an impossible offset, size or count has
** nothing there.
*/
#include "tools/record/image.h"

#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/preload.h"

enum {
  MAX_NOTES = 64 << 10,   /* bytes of a segment of notes */
  MAX_NAMES = 32 << 20,   /* bytes of a table of names */
  MAX_SYMBOLS = 64 << 20, /* bytes of a table of symbols */
  MAX_FILE = 64 << 20,    /* bytes of a file that is read as a whole */
  MAX_SECTIONS = 4096
};

/* A function of LuaJIT's C API that Lua does not have. */
static const char image_luajit[] = "luaJIT_setmode";
/* A function that both have. */
static const char image_lua[] = "lua_newstate";
static const char image_note[] = LJP_NOTE_NAME;

/* NULL: not that many bytes there, too many, or no memory. A NUL follows the
** bytes. The caller frees them. */
static void *image_bytes(int fd, uint64_t at, uint64_t size, uint64_t max)
{
  if (!size || size > max || at > INT64_MAX - size)
    return NULL;
  char *bytes = malloc(size + 1);
  if (!bytes)
    return NULL;
  if (pread(fd, bytes, size, (off_t)at) != (ssize_t)size) {
    free(bytes);
    return NULL;
  }
  bytes[size] = '\0';
  return bytes;
}

static bool image_notes_name(const char *notes, size_t size, size_t align)
{
  size_t at = 0;
  Elf64_Nhdr note;
  while (size - at >= sizeof note) {
    memcpy(&note, notes + at, sizeof note);
    at += sizeof note;
    size_t name = ((size_t)note.n_namesz + align - 1) & ~(align - 1);
    size_t text = ((size_t)note.n_descsz + align - 1) & ~(align - 1);
    if (name > size - at || text > size - at - name)
      return false;
    if (note.n_namesz == sizeof image_note &&
        memcmp(notes + at, image_note, sizeof image_note) == 0)
      return true;
    at += name + text;
  }
  return false;
}

static void image_read_segment(struct ljp_image *image, int fd,
                               const Elf64_Phdr *p)
{
  if (p->p_type == PT_INTERP) {
    char *path =
        image_bytes(fd, p->p_offset, p->p_filesz, sizeof image->loader - 1);
    if (path)
      memcpy(image->loader, path, strlen(path) + 1);
    free(path);
  } else if (p->p_type == PT_NOTE) {
    char *notes = image_bytes(fd, p->p_offset, p->p_filesz, MAX_NOTES);
    image->ours |=
        notes && image_notes_name(notes, p->p_filesz, p->p_align == 8 ? 8 : 4);
    free(notes);
  }
}

static bool image_defines(const char *function, const Elf64_Sym *symbols,
                          size_t count, const char *names, size_t size)
{
  for (size_t i = 0; i < count; i++)
    if (symbols[i].st_shndx != SHN_UNDEF && symbols[i].st_name < size &&
        strcmp(names + symbols[i].st_name, function) == 0)
      return true;
  return false;
}

static bool image_table_has(const char *function, int fd,
                            const Elf64_Shdr *table, const Elf64_Shdr *strings)
{
  bool found = false;
  char *names =
      image_bytes(fd, strings->sh_offset, strings->sh_size, MAX_NAMES);
  /* Most programs do not have the name at all. */
  if (names &&
      memmem(names, strings->sh_size, function, strlen(function) + 1)) {
    Elf64_Sym *symbols =
        image_bytes(fd, table->sh_offset, table->sh_size, MAX_SYMBOLS);
    found = symbols &&
            image_defines(function, symbols, table->sh_size / sizeof *symbols,
                          names, strings->sh_size);
    free(symbols);
  }
  free(names);
  return found;
}

/* exported: only what other files can use. */
static bool image_has(const char *function, bool exported, int fd,
                      const Elf64_Ehdr *head)
{
  bool found = false;
  if (head->e_shentsize != sizeof(Elf64_Shdr))
    return false;
  Elf64_Shdr *sections =
      image_bytes(fd, head->e_shoff, head->e_shnum * sizeof *sections,
                  MAX_SECTIONS * sizeof *sections);
  for (unsigned i = 0; sections && !found && i < head->e_shnum; i++) {
    const Elf64_Shdr *s = &sections[i];
    if ((s->sh_type == SHT_DYNSYM || (s->sh_type == SHT_SYMTAB && !exported)) &&
        s->sh_link < head->e_shnum)
      found = image_table_has(function, fd, s, &sections[s->sh_link]);
  }
  free(sections);
  return found;
}

/* Is the file an ELF file? If so, *native says whether for x86-64. */
static bool image_head(int fd, Elf64_Ehdr *head, bool *native)
{
  memset(head, 0, sizeof *head);
  ssize_t n = pread(fd, head, sizeof *head, 0);
  bool elf = n > EI_NIDENT && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0;
  *native = elf && n == (ssize_t)sizeof *head &&
            head->e_ident[EI_CLASS] == ELFCLASS64 &&
            head->e_ident[EI_DATA] == ELFDATA2LSB &&
            head->e_machine == EM_X86_64;
  return elf;
}

void ljp_image_read(struct ljp_image *image, int fd)
{
  Elf64_Ehdr head;
  *image = (struct ljp_image){0};
  image->elf = image_head(fd, &head, &image->native);
  if (!image->native || head.e_phentsize != sizeof(Elf64_Phdr))
    return;
  Elf64_Phdr *segments =
      image_bytes(fd, head.e_phoff, head.e_phnum * sizeof *segments,
                  UINT16_MAX * sizeof *segments);
  for (unsigned i = 0; segments && i < head.e_phnum; i++)
    image_read_segment(image, fd, &segments[i]);
  free(segments);
  image->luajit = image->ours || image_has(image_luajit, false, fd, &head);
}

static int image_open(const char *path)
{
  return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

bool ljp_image_has_text(const char *path, const char *text)
{
  struct stat st;
  int fd = image_open(path);
  if (fd < 0)
    return false;
  char *bytes = fstat(fd, &st) || !S_ISREG(st.st_mode)
                    ? NULL
                    : image_bytes(fd, 0, (uint64_t)st.st_size, MAX_FILE);
  bool found = bytes && memmem(bytes, (size_t)st.st_size, text, strlen(text));
  free(bytes);
  close(fd);
  return found;
}

bool ljp_image_has_lua(const char *path)
{
  Elf64_Ehdr head;
  bool native;
  int fd = image_open(path);
  if (fd < 0)
    return false;
  bool found = image_head(fd, &head, &native) && native &&
               image_has(image_lua, true, fd, &head) &&
               !image_has(image_luajit, true, fd, &head);
  close(fd);
  return found;
}
