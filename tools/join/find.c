/*
** See find.h.
*/
#include "tools/join/find.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/base/join.h"
#include "src/base/preload.h"

enum { NOTES_BYTES = 4096, ENTRY_BYTES = 4096 };

/* -- ELF ------------------------------------------------------------------- */
bool ljp_elf_read(struct ljp_elf *elf, const struct ljp_image_memory *memory,
                  uint64_t low)
{
  Elf64_Ehdr head;
  elf->count = 0;
  elf->base = 0;
  elf->narrow = false;
  if (!memory->read(memory->ctx, low, &head, sizeof head) ||
      memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
    return false;
  elf->narrow = head.e_ident[EI_CLASS] == ELFCLASS32;
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != EM_X86_64 ||
      head.e_phentsize != sizeof(Elf64_Phdr) || !head.e_phnum ||
      head.e_phnum > LJP_ELF_SEGMENTS ||
      !memory->read(memory->ctx, low + head.e_phoff, elf->segment,
                    head.e_phnum * sizeof *elf->segment))
    return elf->narrow;
  elf->count = head.e_phnum;
  /* The first byte of the file is at the lowest address of the first segment
  ** that is loaded. */
  for (unsigned i = 0; i < elf->count; i++)
    if (elf->segment[i].p_type == PT_LOAD) {
      elf->base = low - (elf->segment[i].p_vaddr - elf->segment[i].p_offset);
      break;
    }
  return true;
}

/* -- Notes ----------------------------------------------------------------- */
/* Calls take for each note until it returns true. */
static void
find_each_note(const struct ljp_elf *elf, const struct ljp_image_memory *memory,
               bool (*take)(void *ctx, const Elf64_Nhdr *note, const char *name,
                            const char *text, uint64_t at),
               void *ctx)
{
  char notes[NOTES_BYTES];
  for (unsigned i = 0; i < elf->count; i++) {
    const Elf64_Phdr *p = &elf->segment[i];
    uint64_t start = elf->base + p->p_vaddr;
    size_t size = p->p_memsz < sizeof notes ? p->p_memsz : sizeof notes;
    size_t align = p->p_align == 8 ? 8 : 4, at = 0;
    Elf64_Nhdr note;
    if (p->p_type != PT_NOTE || !size ||
        !memory->read(memory->ctx, start, notes, size))
      continue;
    while (size - at >= sizeof note) {
      memcpy(&note, notes + at, sizeof note);
      at += sizeof note;
      size_t name = ((size_t)note.n_namesz + align - 1) & ~(align - 1);
      size_t text = ((size_t)note.n_descsz + align - 1) & ~(align - 1);
      if (name > size - at || note.n_descsz > size - at - name)
        break;
      if (take(ctx, &note, notes + at, notes + at + name, start + at + name))
        return;
      if (text > size - at - name)
        break;
      at += name + text;
    }
  }
}

/* Where a distance leads. at: the descriptor's address; member: its offset. */
static uint64_t find_from(uint64_t at, size_t member, int32_t distance)
{
  return at + member + (uint64_t)(int64_t)distance;
}

static bool find_take_ours(void *ctx, const Elf64_Nhdr *note, const char *name,
                           const char *text, uint64_t at)
{
  struct ljp_join_place *out = ctx;
  struct ljp_join_note d;
  if (note->n_namesz != sizeof LJP_NOTE_NAME ||
      memcmp(name, LJP_NOTE_NAME, sizeof LJP_NOTE_NAME) != 0)
    return false;
  out->kind = LJP_PLACE_OLD;
  if (note->n_descsz < sizeof d)
    return true;
  memcpy(&d, text, sizeof d);
  if (d.version < LJP_JOIN_VERSION)
    return true;
  out->kind = LJP_PLACE_NEW;
  if (d.version != LJP_JOIN_VERSION)
    return true;
  out->kind = LJP_PLACE_GOOD;
  out->entry = find_from(at, offsetof(struct ljp_join_note, entry), d.entry);
  out->end = find_from(at, offsetof(struct ljp_join_note, end), d.end);
  out->state = find_from(at, offsetof(struct ljp_join_note, state), d.state);
  out->stack_top =
      find_from(at, offsetof(struct ljp_join_note, stack_top), d.stack_top);
  out->shown = find_from(at, offsetof(struct ljp_join_note, shown), d.shown);
  return true;
}

void ljp_note_read(struct ljp_join_place *note, const struct ljp_elf *elf,
                   const struct ljp_image_memory *memory)
{
  *note = (struct ljp_join_place){.kind = LJP_PLACE_NONE};
  find_each_note(elf, memory, find_take_ours, note);
}

struct build_id {
  unsigned char bytes[LJP_BUILD_ID_BYTES];
  size_t length;
};

static bool find_take_id(void *ctx, const Elf64_Nhdr *note, const char *name,
                         const char *text, uint64_t at)
{
  struct build_id *out = ctx;
  (void)at;
  if (note->n_type != NT_GNU_BUILD_ID || note->n_namesz != 4 ||
      memcmp(name, "GNU", 4) != 0 || note->n_descsz > sizeof out->bytes)
    return false;
  memcpy(out->bytes, text, note->n_descsz);
  out->length = note->n_descsz;
  return true;
}

size_t ljp_elf_build_id(const struct ljp_elf *elf,
                        const struct ljp_image_memory *memory,
                        unsigned char id[LJP_BUILD_ID_BYTES])
{
  struct build_id found = {.length = 0};
  find_each_note(elf, memory, find_take_id, &found);
  memcpy(id, found.bytes, found.length);
  return found.length;
}

static void find_show_id(const struct ljp_elf *elf,
                         const struct ljp_image_memory *memory, char *out)
{
  unsigned char id[LJP_BUILD_ID_BYTES];
  size_t length = ljp_elf_build_id(elf, memory, id);
  out[0] = '\0';
  for (size_t i = 0; i < length; i++)
    sprintf(out + 2 * i, "%02x", id[i]);
}

/* -- A process ------------------------------------------------------------- */
static bool find_read(void *ctx, uint64_t at, void *to, size_t bytes)
{
  return ljp_memory_read(*(pid_t *)ctx, at, to, bytes);
}

/* A note may lie: the entry must be code of the same file, with our first and
** last instructions; state and stack must be memory that can be written. */
static bool find_is_sound(const struct ljp_join_place *note,
                          const struct ljp_mapping *file,
                          const struct ljp_maps *maps, pid_t pid)
{
  static const unsigned char first[] = {0xfc, 0x48, 0x89, 0xe3, 0xe8};
  static const unsigned char last[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
  unsigned char code[sizeof last];
  const struct ljp_mapping *text = ljp_maps_at(maps, note->entry);
  if (!text || !text->execute || text->inode != file->inode ||
      text->device != file->device || note->end <= note->entry ||
      note->end - note->entry > ENTRY_BYTES || note->end > text->high ||
      note->end - note->entry < sizeof last)
    return false;
  if (!ljp_memory_read(pid, note->entry, code, sizeof first) ||
      memcmp(code, first, sizeof first) != 0 ||
      !ljp_memory_read(pid, note->end - sizeof last, code, sizeof last) ||
      memcmp(code, last, sizeof last) != 0)
    return false;
  uint64_t stack = note->stack_top - LJP_JOIN_STACK_BYTES;
  return note->stack_top % 4096 == 0 && stack < note->stack_top &&
         ljp_maps_writable(maps, stack, note->stack_top) &&
         note->state % 8 == 0 &&
         ljp_maps_writable(maps, note->state,
                           note->state + sizeof(struct ljp_join_state));
}

static bool find_named_luajit(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash && strncmp(slash + 1, "libluajit", 9) == 0;
}

int ljp_find(struct ljp_found *found, pid_t pid, const struct ljp_maps *maps)
{
  static struct ljp_elf elf;
  struct ljp_image_memory memory = {find_read, &pid};
  int error = 0;
  bool any = false;
  *found = (struct ljp_found){.note = {.kind = LJP_PLACE_NONE}};
  for (size_t i = 0; i < maps->count; i++) {
    const struct ljp_mapping *m = &maps->list[i];
    struct ljp_join_place note;
    if (m->offset || !m->read || !m->inode)
      continue;
    if (!ljp_elf_read(&elf, &memory, m->low)) {
      error = errno == EPERM || errno == ESRCH ? errno : error;
      continue;
    }
    found->narrow |= elf.narrow && !any;
    any = true;
    ljp_note_read(&note, &elf, &memory);
    bool ours = note.kind != LJP_PLACE_NONE;
    if (note.kind == LJP_PLACE_GOOD && !find_is_sound(&note, m, maps, pid))
      note.kind = LJP_PLACE_NEW;
    if (!ours && (found->luajit || !find_named_luajit(m->path)))
      continue;
    found->luajit = true;
    found->note = note;
    find_show_id(&elf, &memory, found->build_id);
    snprintf(found->object, sizeof found->object, "%s", m->path);
    if (note.kind == LJP_PLACE_GOOD)
      return 0;
  }
  return any ? 0 : error;
}

/* -- A LuaJIT that is not ours --------------------------------------------- */
/* What each LuaJIT has among its constants: its name and version, and the name of a
** symbol that require() looks for. */
static const char find_name[] = "LuaJIT 2.", find_symbol[] = "luaJIT_BC_";
enum { FIND_CHUNK = 1 << 16, FIND_MOST = 256 << 20, FIND_OVERLAP = 64 };

struct signs {
  bool symbol;
  char version[sizeof((struct ljp_found *)0)->version];
};

/* last: nothing follows. Otherwise what is near the end comes again. */
static void find_take_signs(struct signs *signs, const char *data, size_t bytes,
                            bool last)
{
  const char *name = memmem(data, bytes, find_name, sizeof find_name - 1);
  signs->symbol |=
      memmem(data, bytes, find_symbol, sizeof find_symbol - 1) != NULL;
  if (!name || *signs->version)
    return;
  size_t room = (size_t)(data + bytes - name), at = 0;
  if (!last && room < sizeof signs->version)
    return;
  for (; at < room && at + 1 < sizeof signs->version && name[at] >= ' ' &&
         name[at] <= '~' && (name[at] != ' ' || at < sizeof "LuaJIT");
       at++)
    signs->version[at] = name[at];
  signs->version[at] = '\0';
}

/* Looks for both in a mapping. *left: the bytes that may still be read. */
static void find_signs(struct signs *signs,
                       const struct ljp_image_memory *memory,
                       const struct ljp_mapping *m, uint64_t *left)
{
  static char data[FIND_CHUNK];
  for (uint64_t at = m->low; at < m->high && *left;) {
    size_t bytes = m->high - at < sizeof data ? m->high - at : sizeof data;
    bytes = bytes < *left ? bytes : *left;
    if (!memory->read(memory->ctx, at, data, bytes))
      return;
    find_take_signs(signs, data, bytes, at + bytes == m->high);
    *left -= bytes;
    if (at + bytes == m->high || bytes <= FIND_OVERLAP)
      return;
    at += bytes - FIND_OVERLAP;
  }
}

void ljp_find_other(struct ljp_found *found, pid_t pid,
                    const struct ljp_maps *maps)
{
  static struct ljp_elf elf;
  const struct ljp_image_memory memory = {find_read, &pid};
  uint64_t left = FIND_MOST;
  struct signs signs = {.symbol = false};
  const struct ljp_mapping *first = NULL;
  for (size_t i = 0; i < maps->count; i++) {
    const struct ljp_mapping *m = &maps->list[i];
    if (!m->inode || !m->read || m->write ||
        (found->luajit && strcmp(m->path, found->object) != 0))
      continue;
    if (!first || first->inode != m->inode || first->device != m->device) {
      signs = (struct signs){.symbol = false};
      first = m;
    }
    find_signs(&signs, &memory, m, &left);
    if (!signs.symbol || !*signs.version)
      continue;
    memcpy(found->version, signs.version, sizeof found->version);
    if (found->luajit)
      return;
    found->luajit = found->inside = true;
    snprintf(found->object, sizeof found->object, "%s", m->path);
    if (!first->offset && ljp_elf_read(&elf, &memory, first->low))
      find_show_id(&elf, &memory, found->build_id);
    return;
  }
}
