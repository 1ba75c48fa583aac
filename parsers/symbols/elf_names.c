/*
** Function names from symbol tables. An address gets the name of the innermost
** symbol that contains it by its size. A symbol without a size (assembly)
** reaches to the next one, but only in a full table: in the dynamic table of a
** stripped library, anything may follow an exported function, and no name is
** better than a wrong one. Runs in the child (lookup.h).
*/
#include <stdlib.h>
#include <string.h>

#include "parsers/symbols/elf_names.h"
#include "parsers/symbols/lookup.h"
#include "src/base/assert.h"

enum { CODE_MAX = 1024, LOOSE = 0x80 };

/* The code of a file, by its section headers. */
struct code {
  struct {
    uint64_t start, end;
  } list[CODE_MAX];
  size_t count;
};

static void symtab_find_code(Elf *elf, struct code *code)
{
  Elf_Scn *scn = NULL;
  code->count = 0;
  while ((scn = elf_nextscn(elf, scn)) && code->count < CODE_MAX) {
    GElf_Shdr sh;
    if (!gelf_getshdr(scn, &sh) || !(sh.sh_flags & SHF_EXECINSTR) ||
        !(sh.sh_flags & SHF_ALLOC) || sh.sh_addr + sh.sh_size < sh.sh_addr)
      continue;
    code->list[code->count].start = sh.sh_addr;
    code->list[code->count++].end = sh.sh_addr + sh.sh_size;
  }
}

/* The end of the code section that contains the address; 0: none does. */
static uint64_t symtab_code_end(const struct code *code, uint64_t address)
{
  for (size_t i = 0; i < code->count; i++)
    if (address >= code->list[i].start && address < code->list[i].end)
      return code->list[i].end;
  return 0;
}

static bool symtab_push(struct ljp_sym_names *names,
                        const struct ljp_sym_name *name)
{
  if (names->count == names->capacity) {
    size_t capacity = names->capacity ? names->capacity * 2 : 1024;
    void *grown = capacity > LJP_SYM_NAMES_MAX
                      ? NULL
                      : realloc(names->list, capacity * sizeof *names->list);
    if (!grown)
      return false;
    names->list = grown;
    names->capacity = capacity;
  }
  names->list[names->count++] = *name;
  return true;
}

struct ljp_sym_copy {
  struct ljp_sym_copy *next;
  char text[];
};

bool ljp_sym_names_add_copy(struct ljp_sym_names *names, uint64_t start,
                            uint64_t end, const char *name)
{
  size_t len = strlen(name);
  struct ljp_sym_copy *copy = malloc(sizeof *copy + len + 1);
  if (!copy)
    return false;
  memcpy(copy->text, name, len + 1);
  copy->next = names->copies;
  names->copies = copy;
  struct ljp_sym_name entry = {start, end, copy->text, 0};
  return symtab_push(names, &entry);
}

/* Which of several names of a place is the best: functions before labels, global
** before weak before local, few leading underscores before many. */
static uint8_t symtab_rank(unsigned type, unsigned bind, const char *name)
{
  size_t bars = strspn(name, "_");
  unsigned rank = bars < 15 ? (unsigned)bars : 15;
  rank |= (bind == STB_GLOBAL ? 0u : bind == STB_WEAK ? 1u : 2u) << 4;
  return (uint8_t)(rank | (type == STT_NOTYPE ? 1u : 0u) << 6);
}

static bool symtab_add_table(struct ljp_sym_names *names, Elf *elf,
                             Elf_Scn *scn, const GElf_Shdr *sh,
                             const struct code *code)
{
  Elf_Data *data = elf_getdata(scn, NULL);
  size_t each = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
  if (!data || !each)
    return true;
  size_t count = data->d_size / each;
  for (size_t i = 0; i < count && i < INT32_MAX; i++) {
    GElf_Sym sym;
    if (!gelf_getsym(data, (int)i, &sym) || sym.st_shndx == SHN_UNDEF)
      continue;
    unsigned type = GELF_ST_TYPE(sym.st_info);
    if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
      continue;
    uint64_t end = symtab_code_end(code, sym.st_value);
    const char *text = elf_strptr(elf, sh->sh_link, sym.st_name);
    /* $x and the like mark kinds of code; .L is a compiler's label. */
    if (!end || !text || !*text || *text == '$' || *text == '.')
      continue;
    if (!sym.st_size && sh->sh_type != SHT_SYMTAB)
      continue;
    if (sym.st_size && sym.st_size < end - sym.st_value)
      end = sym.st_value + sym.st_size;
    struct ljp_sym_name name = {sym.st_value, end, text, 0};
    name.rank = symtab_rank(type, GELF_ST_BIND(sym.st_info), text);
    if (!sym.st_size)
      name.rank |= LOOSE;
    if (!symtab_push(names, &name))
      return false;
  }
  return true;
}

bool ljp_sym_names_add(struct ljp_sym_names *names, Elf *elf)
{
  struct code *code = malloc(sizeof *code);
  Elf_Scn *scn = NULL;
  bool ok = code != NULL;
  if (ok)
    symtab_find_code(elf, code);
  while (ok && (scn = elf_nextscn(elf, scn))) {
    GElf_Shdr sh;
    if (gelf_getshdr(scn, &sh) &&
        (sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM))
      ok = symtab_add_table(names, elf, scn, &sh, code);
  }
  free(code);
  return ok;
}

/* Sorts by start. At the same start, symbols without a size come first, then
** wide ones before narrow ones, then bad names before good ones: the last one
** is the best. */
static int symtab_compare(const void *a, const void *b)
{
  const struct ljp_sym_name *x = a, *y = b;
  if (x->start != y->start)
    return x->start < y->start ? -1 : 1;
  if ((x->rank & LOOSE) != (y->rank & LOOSE))
    return x->rank & LOOSE ? -1 : 1;
  if (x->end != y->end)
    return x->end > y->end ? -1 : 1;
  if (x->rank != y->rank)
    return x->rank > y->rank ? -1 : 1;
  size_t m = strlen(x->name), n = strlen(y->name);
  if (m != n)
    return m > n ? -1 : 1;
  return -strcmp(x->name, y->name);
}

bool ljp_sym_names_sort(struct ljp_sym_names *names)
{
  uint64_t reach = 0;
  if (!names->count)
    return true;
  free(names->reach);
  names->reach = malloc(names->count * sizeof *names->reach);
  if (!names->reach)
    return false;
  qsort(names->list, names->count, sizeof *names->list, symtab_compare);
  uint64_t next = UINT64_MAX;
  for (size_t i = names->count; i-- > 0;) {
    struct ljp_sym_name *name = &names->list[i];
    if ((name->rank & LOOSE) && next < name->end)
      name->end = next;
    if (!i || names->list[i - 1].start != name->start)
      next = name->start;
  }
  for (size_t i = 0; i < names->count; i++) {
    if (names->list[i].end > reach)
      reach = names->list[i].end;
    names->reach[i] = reach;
  }
  return true;
}

void ljp_sym_names_free(struct ljp_sym_names *names)
{
  while (names->copies) {
    struct ljp_sym_copy *next = names->copies->next;
    free(names->copies);
    names->copies = next;
  }
  free(names->list);
  free(names->reach);
  *names = (struct ljp_sym_names){0};
}

const char *ljp_sym_names_find(const struct ljp_sym_names *names,
                               uint64_t address)
{
  size_t low = 0, high = names->count;
  const char *loose = NULL;
  ljp_assert(!high || names->reach); /* Sorted. */
  while (low < high) { /* The first that starts after the address. */
    size_t mid = low + (high - low) / 2;
    if (names->list[mid].start <= address)
      low = mid + 1;
    else
      high = mid;
  }
  /* In files from a linker, symbols nest only a few levels deep. */
  for (unsigned steps = 0; low-- > 0 && steps < 1000; steps++) {
    const struct ljp_sym_name *name = &names->list[low];
    if (names->reach[low] <= address)
      break;
    if (name->end <= address)
      continue;
    if (!(name->rank & LOOSE))
      return name->name;
    if (!loose)
      loose = name->name;
  }
  return loose;
}
