/* Fuzz target: any bytes as the file of a module. The target reads the file as
** the child process does, and looks up names and DWARF at many addresses. In
** production, a crash in elfutils only costs the names of one module
** (parsers/symbols/child.c); here it is a finding. */
#include <stdlib.h>
#include <string.h>

#include "parsers/symbols/demangle.h"
#include "parsers/symbols/dwarf_lines.h"
#include "parsers/symbols/elf_names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed);

enum { PLACES = 64 };

static size_t heard;

static void each(void *ctx, size_t index, const struct ljp_symbol_frame *frames,
                 unsigned count)
{
  (void)ctx;
  if (index >= PLACES || !count || count > LJP_SYM_FRAMES_MAX)
    abort();
  for (unsigned i = 0; i < count; i++)
    heard += strlen(frames[i].function) + strlen(frames[i].file);
}

/* Addresses where functions begin. */
static size_t places(const struct ljp_sym_names *names, uint64_t *out)
{
  size_t n = 0;
  for (size_t i = 0; i < names->count && n < PLACES; i++)
    if (!n || out[n - 1] < names->list[i].start)
      out[n++] = names->list[i].start;
  for (; n < PLACES; n++)
    out[n] = n ? out[n - 1] + 7 : 0x1000;
  return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct ljp_sym_names names = {0};
  uint64_t addresses[PLACES];
  char pretty[LJP_SYM_NAME_MAX];
  elf_version(EV_CURRENT);
  char *copy = malloc(size + 1);
  if (!copy)
    return 0;
  memcpy(copy, data, size);
  Elf *elf = elf_memory(copy, size);
  if (elf && elf_kind(elf) == ELF_K_ELF && ljp_sym_names_add(&names, elf) &&
      ljp_sym_names_sort(&names) && ljp_sym_names_add_plt(&names, elf)) {
    for (size_t i = 0; i < names.count; i++) {
      const char *name = ljp_sym_names_find(&names, names.list[i].start);
      if (!name)
        abort(); /* The symbol that starts there must be found. */
      ljp_sym_demangle(name, pretty);
      heard += strlen(pretty);
    }
    struct ljp_sym_request request = {.addresses = addresses,
                                      .count = places(&names, addresses)};
    Dwarf *dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
    if (dwarf) {
      ljp_sym_dwarf(dwarf, &request, each, NULL);
      dwarf_end(dwarf);
    }
  }
  ljp_sym_names_free(&names);
  if (elf)
    elf_end(elf);
  free(copy);
  return 0;
}

/* Most mutations change a few bytes after the file's header, so that it remains
** an ELF file with changed tables, names or DWARF. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
  enum { HEAD = 64, MOST = 16 };
  if (size < HEAD + MOST || seed % 16 == 0)
    return LLVMFuzzerMutate(data, size, max_size);
  size_t at = HEAD + (seed / 16 * 2654435761u) % (size - HEAD - MOST + 1);
  uint8_t window[MOST];
  memcpy(window, data + at, MOST);
  size_t n = LLVMFuzzerMutate(window, 1 + seed / 16 % MOST, MOST);
  memcpy(data + at, window, n);
  return size;
}
