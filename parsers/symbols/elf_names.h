/*
** Function names from symbol tables, and the names that the linkage table's
** entries get from them (elf_plt.c). Runs in the child process (lookup.h).
*/
#ifndef LJP_PARSERS_SYMBOLS_ELF_NAMES_H
#define LJP_PARSERS_SYMBOLS_ELF_NAMES_H

#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>

struct ljp_sym_name {
  uint64_t start, end; /* end is exclusive. */
  const char *name;    /* Points into the file's bytes, or to a copy. */
  uint8_t rank;        /* Lower is better at the same start. */
};

struct ljp_sym_names {
  struct ljp_sym_name *list; /* By start, once they are sorted. */
  uint64_t *reach;           /* [i]: the highest end in list[0..i]. */
  size_t count, capacity;
  struct ljp_sym_copy *copies; /* Names that are in no file. */
};

/* All return false if there is no memory, or too many names. */

/* Adds the function symbols of an object. The section headers say where code
** is; those of a debug file do, too. */
bool ljp_sym_names_add(struct ljp_sym_names *names, Elf *elf);

/* Adds a name, which is copied. */
bool ljp_sym_names_add_copy(struct ljp_sym_names *names, uint64_t start,
                            uint64_t end, const char *name);

/* Must be called before ljp_sym_names_find(). */
bool ljp_sym_names_sort(struct ljp_sym_names *names);

/* Adds the entries of the linkage table. names is sorted before and after. */
bool ljp_sym_names_add_plt(struct ljp_sym_names *names, Elf *elf);

void ljp_sym_names_free(struct ljp_sym_names *names);

/* The innermost function that contains the address; NULL: none does. */
const char *ljp_sym_names_find(const struct ljp_sym_names *names,
                               uint64_t address);

#endif
