/*
** What the files of symbols share. The looking up itself (elf_find.c,
** elf_names.c, dwarf_lines.c) runs in the child process; it may be killed by
** what it reads, and takes care only of what a child could do to others: time,
** memory, output.
*/
#ifndef LJP_PARSERS_SYMBOLS_PRIV_H
#define LJP_PARSERS_SYMBOLS_PRIV_H

#include <gelf.h>
#include <elfutils/libdw.h>

#include "parsers/symbols/symbols.h"

/* Bounds on what one file can make us take or tell. */
#define LJP_SYM_FRAMES_MAX 256u       /* Inlined levels at an address. */
#define LJP_SYM_NAME_MAX 4096u        /* Bytes of a name or path; cut beyond. */
#define LJP_SYM_FILE_MAX (8LL << 30)  /* A debug file is no larger. */
#define LJP_SYM_NAMES_MAX (16u << 20) /* Symbols in a table. */

/* What is asked of one module. */
struct ljp_sym_request {
  const char *path; /* Terminated. */
  const uint8_t *build_id;
  uint32_t build_id_len;
  uint64_t span, flags;
  const uint64_t *addresses; /* Ascending, no two alike. */
  size_t count;
};

/* How thoroughly a module is looked at: less after a child died of it. */
enum ljp_sym_level { LJP_SYM_FULL, LJP_SYM_NAMES, LJP_SYM_NOTHING };

/* Where answers go. index is the place in addresses. */
struct ljp_sym_sink {
  void *ctx;
  void (*answer)(void *ctx, size_t index, const struct ljp_symbol_frame *frames,
                 unsigned count);
  void (*notice)(void *ctx, const char *text);
};

/* Answers a request in this process. Addresses without an answer are not
** known. */
void ljp_sym_lookup(const struct ljp_symbols_options *options,
                    const struct ljp_sym_request *request,
                    enum ljp_sym_level level, const struct ljp_sym_sink *sink);

/* -- Files (elf_find.c) ---------------------------------------------------- */

struct ljp_sym_file {
  int fd; /* -1: bytes in memory (the vDSO). */
  Elf *elf;
};

/* The module's own file and the one with its debug information (may be the
** same, or none); elf NULL: there is none that may be used. */
struct ljp_sym_files {
  struct ljp_sym_file own, debug;
};

void ljp_sym_files_open(struct ljp_sym_files *files,
                        const struct ljp_symbols_options *options,
                        const struct ljp_sym_request *request,
                        const struct ljp_sym_sink *sink);
void ljp_sym_files_close(struct ljp_sym_files *files);

/* -- Names (elf_names.c) ---------------------------------------------------- */

struct ljp_sym_name {
  uint64_t start, end; /* end: exclusive. */
  const char *name;    /* Points into the file's bytes. */
  uint8_t rank;        /* Lower is better at the same start. */
};

struct ljp_sym_names {
  struct ljp_sym_name *list; /* By start. */
  uint64_t *reach;           /* Highest end in list[0..i]. */
  size_t count, capacity;
  struct ljp_sym_copy *copies; /* Names that stand in no file. */
};

/* Adds the function symbols of an object; own is the file with the section
** contents (a debug file's headers say where code is, too). */
bool ljp_sym_names_add(struct ljp_sym_names *names, Elf *elf);
/* A name that is kept as a copy. false: no memory. */
bool ljp_sym_names_push_copy(struct ljp_sym_names *names, uint64_t start,
                             uint64_t end, const char *name);
/* The entries of the linkage table (elf_plt.c), of sorted names to sorted. */
bool ljp_sym_names_add_plt(struct ljp_sym_names *names, Elf *elf);
bool ljp_sym_names_sort(struct ljp_sym_names *names);
void ljp_sym_names_free(struct ljp_sym_names *names);

/* The innermost function that holds the address; NULL: none does. */
const char *ljp_sym_names_find(const struct ljp_sym_names *names,
                               uint64_t address);

/* A name for people: demangled, without version and clone suffixes. The
** result stands in out[LJP_SYM_NAME_MAX]. */
void ljp_sym_pretty(const char *name, char *out);

/* -- Lines and inlining (dwarf_lines.c) ------------------------------------- */

/* Calls each for every address that DWARF knows something about, ascending
** per unit; frames[count - 1].function, the outermost, is "" where the symbol
** table is to name it and a name else. */
void ljp_sym_dwarf(Dwarf *dwarf, const struct ljp_sym_request *request,
                   void (*each)(void *ctx, size_t index,
                                const struct ljp_symbol_frame *frames,
                                unsigned count),
                   void *ctx);

/* -- The child (child.c) -------------------------------------------- */

/* Answers many requests in child processes. false: none could be started. */
struct ljp_sym_job {
  struct ljp_sym_request request;
  struct ljp_sym_sink sink;
};
bool ljp_sym_run(const struct ljp_symbols_options *options,
                 const struct ljp_sym_job *jobs, size_t count);

#endif
