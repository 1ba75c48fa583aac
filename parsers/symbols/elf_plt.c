/*
** Names for the entries of the linkage table, such as "lua_rawgeti@plt". The
** code of an entry shows where it jumps: through a slot that a relocation fills
** with the address of a symbol. (Or with the address that a resolver function
** returns at program start; then the entry gets the resolver's name.) x86-64
** only; elsewhere the entries have no names. Runs in the child (lookup.h).
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/symbols/elf_names.h"
#include "parsers/symbols/lookup.h"

enum { RELOCATIONS_MAX = 1 << 22, JUMP_BYTES = 6 };

struct slot {
  uint64_t address;
  const char *name;
};

struct slots {
  struct slot *list;
  size_t count, room;
};

static bool plt_add_slot(struct slots *slots, uint64_t address,
                         const char *name)
{
  if (slots->count == slots->room) {
    size_t room = slots->room ? slots->room * 2 : 256;
    void *grown = room > RELOCATIONS_MAX
                      ? NULL
                      : realloc(slots->list, room * sizeof *slots->list);
    if (!grown)
      return false;
    slots->list = grown;
    slots->room = room;
  }
  slots->list[slots->count++] = (struct slot){address, name};
  return true;
}

/* Adds the slots that a table of relocations fills with functions. */
static bool plt_add_relocations(struct slots *slots,
                                const struct ljp_sym_names *known, Elf *elf,
                                Elf_Scn *scn, const GElf_Shdr *sh)
{
  GElf_Shdr table;
  Elf_Scn *symbols = elf_getscn(elf, sh->sh_link);
  Elf_Data *data = elf_getdata(scn, NULL);
  Elf_Data *names = symbols ? elf_getdata(symbols, NULL) : NULL;
  size_t each = gelf_fsize(elf, ELF_T_RELA, 1, EV_CURRENT);
  if (!data || !each || (names && !gelf_getshdr(symbols, &table)))
    return true;
  for (size_t i = 0; i < data->d_size / each && i < RELOCATIONS_MAX; i++) {
    GElf_Rela rela;
    GElf_Sym sym;
    if (!gelf_getrela(data, (int)i, &rela))
      continue;
    uint64_t type = GELF_R_TYPE(rela.r_info), index = GELF_R_SYM(rela.r_info);
    const char *name = NULL;
    if (type == R_X86_64_IRELATIVE)
      name = ljp_sym_names_find(known, (uint64_t)rela.r_addend);
    else if ((type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) &&
             index && index <= INT32_MAX && names &&
             gelf_getsym(names, (int)index, &sym))
      name = elf_strptr(elf, table.sh_link, sym.st_name);
    if (name && *name && !plt_add_slot(slots, rela.r_offset, name))
      return false;
  }
  return true;
}

static int plt_by_address(const void *a, const void *b)
{
  const struct slot *x = a, *y = b;
  return x->address < y->address ? -1 : x->address > y->address;
}

/* The address of the slot that an entry's code jumps through; 0: there is no
** such jump. */
static uint64_t plt_jump_slot(const uint8_t *code, size_t len, uint64_t address)
{
  for (size_t i = 0; i + JUMP_BYTES <= len; i++)
    if (code[i] == 0xff && code[i + 1] == 0x25) {
      int32_t away;
      memcpy(&away, code + i + 2, sizeof away);
      return address + i + JUMP_BYTES + (uint64_t)(int64_t)away;
    }
  return 0;
}

/* The size of an entry. gcc -static leaves it out, and makes short entries. */
static size_t plt_entry_bytes(const GElf_Shdr *sh, const Elf_Data *data)
{
  const uint8_t *code = data->d_buf;
  return sh->sh_entsize == 8 || (sh->sh_entsize == 0 && data->d_size >= 16 &&
                                 code[0] == 0xff && code[1] == 0x25 &&
                                 code[8] == 0xff && code[9] == 0x25)
             ? 8
             : 16;
}

static bool plt_add_entries(struct ljp_sym_names *names,
                            const struct slots *slots, Elf_Scn *scn,
                            const GElf_Shdr *sh)
{
  Elf_Data *data = elf_rawdata(scn, NULL);
  if (!data || !data->d_buf || sh->sh_addr + sh->sh_size < sh->sh_addr)
    return true;
  size_t each = plt_entry_bytes(sh, data);
  for (size_t at = 0; at + each <= data->d_size; at += each) {
    struct slot key = {plt_jump_slot((const uint8_t *)data->d_buf + at, each,
                                     sh->sh_addr + at),
                       NULL};
    const struct slot *slot = key.address && slots->count
                                  ? bsearch(&key, slots->list, slots->count,
                                            sizeof key, plt_by_address)
                                  : NULL;
    char text[LJP_SYM_NAME_MAX];
    if (!slot)
      continue;
    /* Without the version, which names in a full table may have. */
    int len = (int)strcspn(slot->name, "@");
    snprintf(text, sizeof text, "%.*s@plt", len < 4000 ? len : 4000,
             slot->name);
    if (!ljp_sym_names_add_copy(names, sh->sh_addr + at,
                                sh->sh_addr + at + each, text))
      return false;
  }
  return true;
}

bool ljp_sym_names_add_plt(struct ljp_sym_names *names, Elf *elf)
{
  struct slots slots = {0};
  GElf_Ehdr ehdr;
  GElf_Shdr sh;
  Elf_Scn *scn = NULL;
  size_t strings;
  bool ok = true;
  if (!gelf_getehdr(elf, &ehdr) || ehdr.e_machine != EM_X86_64 ||
      elf_getshdrstrndx(elf, &strings) != 0)
    return true;
  while (ok && (scn = elf_nextscn(elf, scn)))
    if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_RELA)
      ok = plt_add_relocations(&slots, names, elf, scn, &sh);
  if (slots.count)
    qsort(slots.list, slots.count, sizeof *slots.list, plt_by_address);
  while (ok && (scn = elf_nextscn(elf, scn))) {
    if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_PROGBITS)
      continue;
    const char *name = elf_strptr(elf, strings, sh.sh_name);
    if (name && (!strcmp(name, ".plt") || !strcmp(name, ".plt.sec") ||
                 !strcmp(name, ".plt.got")))
      ok = plt_add_entries(names, &slots, scn, &sh);
  }
  free(slots.list);
  return ok && ljp_sym_names_sort(names);
}
