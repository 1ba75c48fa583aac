/*
** See bind.h.
**
** The object's slots of calls (DT_JMPREL) hold the functions' addresses. A slot
** that is not bound yet leads back into the object's procedure linkage table,
** to an instruction that pushes the slot's number for the loader. Only such
** slots are changed, so whatever a tool has put into a slot stays there. The
** loader finds the function in the same scope and with the same version as if
** it bound the call itself. Allocators and sanitizers put functions without a
** version before those of libc. The loader would take them, but dlvsym() does
** not know them: see bind_find().
*/
#include "src/base/bind.h"

#include <features.h>

#if defined(__x86_64__) && defined(__GLIBC__)

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bind_object {
  uintptr_t base;
  const Elf64_Rela *slots;
  size_t count;
  const Elf64_Sym *symbols;
  const char *strings;
  const Elf64_Half *versions;  /* of each symbol; NULL: none */
  const Elf64_Verneed *needed; /* NULL: none */
};

/* There is none in a program without shared libraries. */
extern Elf64_Dyn _DYNAMIC[] __attribute__((weak, visibility("hidden")));

/* The loader has relocated the pointers in place, or (where the section is
** read-only) has not. */
static const void *bind_pointer(const struct bind_object *o, Elf64_Addr at)
{
  return (const void *)(at < o->base ? at + o->base : at);
}

/* False: no slots. */
static bool bind_read(struct bind_object *o)
{
  Dl_info info;
  struct link_map *map = NULL;
  if (!_DYNAMIC || !dladdr1(_DYNAMIC, &info, (void **)&map, RTLD_DL_LINKMAP) ||
      !map)
    return false;
  *o = (struct bind_object){.base = map->l_addr};
  for (const Elf64_Dyn *d = _DYNAMIC; d->d_tag != DT_NULL; d++) {
    const void *at = bind_pointer(o, d->d_un.d_ptr);
    switch (d->d_tag) {
    case DT_JMPREL:
      o->slots = at;
      break;
    case DT_PLTRELSZ:
      o->count = d->d_un.d_val / sizeof *o->slots;
      break;
    case DT_SYMTAB:
      o->symbols = at;
      break;
    case DT_STRTAB:
      o->strings = at;
      break;
    case DT_VERSYM:
      o->versions = at;
      break;
    case DT_VERNEED:
      o->needed = at;
      break;
    default:
      break;
    }
  }
  return o->slots && o->symbols && o->strings;
}

/* Is this the place in the linkage table to which an unbound slot leads? There
** may be an endbr64 before the push. */
static bool bind_is_unbound(const unsigned char *code, uint32_t number)
{
  static const unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
  enum { PUSH = 0x68 };
  uint32_t pushed;
  if (code[0] == endbr64[0] && code[1] == endbr64[1] && code[2] == endbr64[2] &&
      code[3] == endbr64[3])
    code += sizeof endbr64;
  if (code[0] != PUSH)
    return false;
  memcpy(&pushed, code + 1, sizeof pushed);
  return pushed == number;
}

/* NULL: the symbol has no version. */
static const char *bind_version(const struct bind_object *o, uint32_t symbol)
{
  enum { HIDDEN = 0x8000, FIRST = 2 };
  unsigned number =
      o->versions && o->needed ? o->versions[symbol] & ~HIDDEN : 0;
  if (number < FIRST)
    return NULL;
  const char *file = (const char *)o->needed;
  for (;;) {
    const Elf64_Verneed *need = (const Elf64_Verneed *)(const void *)file;
    const char *at = file + need->vn_aux;
    for (unsigned i = 0; i < need->vn_cnt; i++) {
      const Elf64_Vernaux *version = (const Elf64_Vernaux *)(const void *)at;
      if ((version->vna_other & ~HIDDEN) == number)
        return o->strings + version->vna_name;
      at += version->vna_next;
    }
    if (!need->vn_next)
      return NULL;
    file += need->vn_next;
  }
}

static const void *bind_owner(const void *function)
{
  Dl_info info;
  return dladdr(function, &info) ? info.dli_fbase : NULL;
}

/* If another object has the name, too, and comes first, then its definition has
** no version (or a default one), and is what the loader would take. */
static void *bind_find(const char *name, const char *version)
{
  void *first = dlsym(RTLD_DEFAULT, name);
  void *function = version ? dlvsym(RTLD_DEFAULT, name, version) : first;
  /* dladdr() looks at all symbols of the object: only where it is needed. */
  return function && first && first != function &&
                 bind_owner(first) != bind_owner(function)
             ? first
             : function;
}

static void bind_slot(const struct bind_object *o, uint32_t number)
{
  const Elf64_Rela *r = &o->slots[number];
  void *_Atomic *slot = (void *_Atomic *)(o->base + r->r_offset);
  if (ELF64_R_TYPE(r->r_info) != R_X86_64_JUMP_SLOT ||
      !bind_is_unbound(atomic_load(slot), number))
    return;
  uint32_t symbol = ELF64_R_SYM(r->r_info);
  const char *name = o->strings + o->symbols[symbol].st_name;
  const char *version = bind_version(o, symbol);
  void *function = bind_find(name, version);
  if (function)
    atomic_store(slot, function);
  else
    dlerror(); /* this is not the program's own error */
}

void ljp_bind_calls(void)
{
  struct bind_object object;
  if (!bind_read(&object))
    return;
  for (size_t i = 0; i < object.count; i++)
    bind_slot(&object, (uint32_t)i);
}

#else /* musl binds all calls when it loads an object */

void ljp_bind_calls(void)
{
}

#endif
