/*
** Find: our library in the memory of a process, by its ELF note; and objects
** that have a LuaJIT at all.
**
** The bytes come from the process's memory, so it makes no difference whether a
** file was deleted or replaced, or is in another namespace. They are not
** trusted: the parser takes any bytes.
*/
#ifndef LJP_TOOLS_FIND_H
#define LJP_TOOLS_FIND_H

#include <elf.h>

#include "tools/join/process.h"

/* How memory is read: of a process or, in tests, of made-up bytes. */
struct ljp_image_memory {
  bool (*read)(void *ctx, uint64_t at, void *to, size_t bytes);
  void *ctx;
};

/* An ELF file in memory: its head and program headers. */
enum { LJP_ELF_SEGMENTS = 64 };
struct ljp_elf {
  uint64_t base; /* what is added to addresses of the file */
  bool narrow;   /* a 32-bit file: nothing else is known */
  unsigned count;
  Elf64_Phdr segment[LJP_ELF_SEGMENTS];
};

/* low: where the file's first bytes are. */
bool ljp_elf_read(struct ljp_elf *elf, const struct ljp_image_memory *memory,
                  uint64_t low);

/* Reads the file's build-id. Returns its bytes; 0: it has none. */
enum { LJP_BUILD_ID_BYTES = 20 };
size_t ljp_elf_build_id(const struct ljp_elf *elf,
                        const struct ljp_image_memory *memory,
                        unsigned char id[LJP_BUILD_ID_BYTES]);

enum ljp_place_kind {
  LJP_PLACE_NONE,
  LJP_PLACE_OLD, /* ours, from before programs could be joined */
  LJP_PLACE_NEW, /* ours, of a version that we do not know */
  LJP_PLACE_GOOD
};

/* Addresses in the process, as the note says. Only ljp_find() checks them, all
** but `shown`. */
struct ljp_join_place {
  enum ljp_place_kind kind;
  uint64_t entry, end, state, stack_top, shown;
};

void ljp_note_read(struct ljp_join_place *note, const struct ljp_elf *elf,
                   const struct ljp_image_memory *memory);

struct ljp_found {
  struct ljp_join_place note;
  char object[4096]; /* the file with the library, or with another LuaJIT */
  bool luajit;       /* there is a LuaJIT, ours or not */
  bool narrow;       /* a 32-bit program */
  bool inside;      /* a LuaJIT that is not ours is part of the object, which is
                     ** no library of that name */
  char version[32]; /* of a LuaJIT that is not ours; "" if it is not known */
  char build_id[2 * 20 + 1]; /* of the object; "" if it has none */
};

/* Finds a process's library. Returns an errno if its memory cannot be read, or
** 0. */
int ljp_find(struct ljp_found *found, pid_t pid, const struct ljp_maps *maps);
/* No file has our note. Looks for the version of a LuaJIT that is not ours, and for
** one that is part of another file, in the constants of the process's files. */
void ljp_find_other(struct ljp_found *found, pid_t pid,
                    const struct ljp_maps *maps);

#endif
