/*
** Frames of C functions as truth_judge reads them, for the Lua modules here.
*/
#ifndef TEST_TRUTH_FRAME_H
#define TEST_TRUTH_FRAME_H

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lauxlib.h"
#include "lua.h"

/* A function that has frames and a symbol of its own. */
#define TRUTH_APART __attribute__((noinline, noclone, visibility("default")))

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

/* The size of a function that this module exports; 0: it does not. The strings of
** symbols stand behind the symbols. */
static inline unsigned long truth_size(const Dl_info *info, const char *name)
{
  const char *base = info->dli_fbase, *symbols = NULL, *strings = NULL;
  for (const ElfW(Dyn) *d = _DYNAMIC; d->d_tag != DT_NULL; d++) {
    /* glibc's loader has added the base, musl's has not. */
    const char *to = d->d_un.d_ptr < (ElfW(Addr))base
                         ? base + d->d_un.d_ptr
                         : (const char *)d->d_un.d_ptr;
    if (d->d_tag == DT_SYMTAB)
      symbols = to;
    else if (d->d_tag == DT_STRTAB)
      strings = to;
  }
  const ElfW(Sym) *symbol = (const ElfW(Sym) *)(const void *)symbols;
  for (; symbol && (const char *)(symbol + 1) <= strings; symbol++)
    if (strcmp(strings + symbol->st_name, name) == 0)
      return symbol->st_size;
  return 0;
}

/* Pushes "file+0xADDRESS" of a function, or of all of its instructions
** ("file+0xBEGIN..END") if it has a name, and returns 1. */
static inline int truth_push_frame(lua_State *L, void *at, const char *name)
{
  char text[256];
  Dl_info info;
  if (!at || !dladdr(at, &info))
    return luaL_error(L, "no such function");
  const char *slash = strrchr(info.dli_fname, '/');
  unsigned long address = (unsigned long)((char *)at - (char *)info.dli_fbase);
  unsigned long size = name ? truth_size(&info, name) : 0;
  int n = snprintf(text, sizeof text, "%s+0x%lx",
                   slash ? slash + 1 : info.dli_fname, address);
  if (name && !size)
    return luaL_error(L, "no symbol %s", name);
  if (size)
    snprintf(text + n, sizeof text - (size_t)n, "..%lx", address + size);
  lua_pushstring(L, text);
  return 1;
}

/* Pushes the range of a TRUTH_APART function of this module. */
static inline int truth_push_range(lua_State *L, const char *name)
{
  static const char here;
  Dl_info info;
  void *self = dladdr(&here, &info)
                   ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD)
                   : NULL;
  return truth_push_frame(L, self ? dlsym(self, name) : NULL, name);
}

/* Pushes a frame of the C function that Lua calls by that name. */
static inline int truth_push_function(lua_State *L, const luaL_Reg *functions,
                                      const char *name)
{
  void *at = NULL;
  for (; functions->name; functions++)
    if (strcmp(functions->name, name) == 0)
      memcpy(&at, &functions->func, sizeof at);
  return truth_push_frame(L, at, NULL);
}

#endif
