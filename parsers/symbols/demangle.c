/*
** Names of symbols for people. C++ names are demangled by the C++ runtime's
** own demangler, which is loaded when the first such name is met: so neither
** the build nor the start of ljprof needs C++.
*/
#include "parsers/symbols/demangle.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The length of a name without what compilers append to the names of parts and
** copies of a function. */
static size_t demangle_strip_suffixes(const char *name, size_t len)
{
  static const char *const suffixes[] = {".part",     ".isra", ".constprop",
                                         ".lto_priv", ".cold", ".localalias",
                                         ".llvm",     ".clone"};
  for (bool again = true; again;) {
    size_t n = len;
    again = false;
    while (n && name[n - 1] >= '0' && name[n - 1] <= '9')
      n--;
    if (n < len && n && name[n - 1] == '.')
      n--;
    else
      n = len;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
      size_t s = strlen(suffixes[i]);
      if (n > s && memcmp(name + n - s, suffixes[i], s) == 0) {
        len = n - s;
        again = true;
      }
    }
  }
  return len;
}

static void demangle_copy(char *out, const char *text, size_t len)
{
  bool cut = len >= LJP_SYM_NAME_MAX;
  size_t n = cut ? LJP_SYM_NAME_MAX - 4 : len;
  memcpy(out, text, n);
  memcpy(out + n, "...", 4);
  if (!cut)
    out[n] = '\0';
}

/* The demangled name, to be freed; NULL: it cannot be demangled. */
static char *demangle_cpp(const char *name)
{
  typedef char *demangler(const char *, char *, size_t *, int *);
  static demangler *call;
  static bool tried;
  int status = 0;
  if (!tried) {
    void *lib = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    tried = true;
    if (lib)
      *(void **)&call = dlsym(lib, "__cxa_demangle");
  }
  char *text = call ? call(name, NULL, NULL, &status) : NULL;
  if (status) {
    free(text);
    text = NULL;
  }
  return text;
}

void ljp_sym_demangle(const char *name, char out[LJP_SYM_NAME_MAX])
{
  /* A version follows the '@', except in names of the linkage table. */
  const char *at = *name ? strchr(name + 1, '@') : NULL;
  size_t len = at ? (size_t)(at - name) : strlen(name);
  bool plt = at && strcmp(at, "@plt") == 0;
  char plain[LJP_SYM_NAME_MAX];
  len = demangle_strip_suffixes(name, len);
  demangle_copy(plain, name, len);
  char *text = NULL;
  if (len > 2 && len < LJP_SYM_NAME_MAX && plain[0] == '_' && plain[1] == 'Z')
    text = demangle_cpp(plain);
  if (text)
    demangle_copy(out, text, strlen(text));
  else
    demangle_copy(out, plain, strlen(plain));
  free(text);
  len = strlen(out);
  if (plt && len + sizeof "@plt" <= LJP_SYM_NAME_MAX)
    memcpy(out + len, "@plt", sizeof "@plt");
}
