/*
** Names of C functions, from the symbol tables of the files that are loaded.
** For a writer whose format needs names while the program runs; ljprof itself
** finds names later (parsers/symbols).
** Invariants: a file is opened only at the start, and when the loader has just
** loaded it: later the program may be in a sandbox that forbids to open files.
** A file with another build id than the module in memory has no names here.
** Writer thread only. Memory: at most LJP_ELF_MAX_BYTES; modules that do not
** fit have no names.
*/
#ifndef LJP_ELF_FUNCTIONS_H
#define LJP_ELF_FUNCTIONS_H

#include "src/writer/modules.h"

#define LJP_ELF_MAX_BYTES ((size_t)16 << 20)

struct ljp_elf_function {
  uint32_t start, size; /* start: an offset, as events have it */
  uint32_t name;        /* in names */
  uint32_t rank;        /* of several at one place, the lowest rank wins */
};

struct ljp_elf_module {
  uint32_t id; /* as in ljp_modules */
  bool seen;
  struct ljp_elf_function *functions; /* sorted by start and rank */
  uint32_t count;
  char *names;
  size_t bytes; /* of memory */
};

struct ljp_elf_modules {
  struct ljp_elf_module *list;
  size_t count, capacity;
  size_t bytes;
};

void ljp_elf_modules_fini(struct ljp_elf_modules *m);

/* Reads the functions of new modules and forgets those that are gone. */
void ljp_elf_modules_update(struct ljp_elf_modules *m,
                            const struct ljp_modules *modules);

/* The function that contains the offset; NULL: it is not known. Valid until the
** next update. */
const char *ljp_elf_modules_name(const struct ljp_elf_modules *m, uint32_t id,
                                 uint64_t offset);

#endif
