/*
** A program that knows its own symbols: each place of interest calls note(),
** which prints the address of the call in the file, its line, and the functions
** around the call, inner first. The test looks up the address and expects the
** same answer.
**
** host [vdso] [LIBRARY...]: with vdso, also a place in the vDSO. Loads each
** library, runs its places, and unloads it.
*/
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/writer/modules.h"

static void tell(uint64_t back, int line, const char *chain)
{
  struct ljp_modules modules;
  uint64_t address = back - 1; /* Within the call. */
  ljp_modules_init(&modules);
  ljp_modules_look(&modules, ljp_clock_ns());
  for (size_t i = 0; i < modules.count; i++) {
    const struct ljp_module *m = &modules.list[i];
    if (address < m->start || address >= m->end)
      continue;
    printf("%s\t", m->path);
    for (unsigned k = 0; k < m->build_id_len; k++)
      printf("%02x", m->build_id[k]);
    printf("\t%" PRIu64 "\t%u\t%" PRIx64 "\t%s:%d\n", m->end - m->start,
           (unsigned)m->flags, address - m->bias, chain, line);
  }
  ljp_modules_fini(&modules);
}

__attribute__((noinline, noclone)) static void note(int line, const char *chain)
{
  tell((uintptr_t)__builtin_return_address(0), line, chain);
  __asm__ volatile("" ::: "memory"); /* No tail call. */
}

static inline __attribute__((always_inline)) void innermost(void)
{
  note(__LINE__, "innermost;middle;outer_one");
}

static inline __attribute__((always_inline)) void middle(void)
{
  innermost();
  note(__LINE__, "middle;outer_one");
}

__attribute__((noinline, noclone)) void outer_one(void)
{
  middle();
  note(__LINE__, "outer_one");
  __asm__ volatile("");
}

static __attribute__((noinline, noclone)) void a_static_one(void)
{
  note(__LINE__, "a_static_one");
  __asm__ volatile("");
}

/* A place in the vDSO. */
static void in_vdso(void)
{
  void *vdso = dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
  void *clock = vdso ? dlsym(vdso, "__vdso_clock_gettime") : NULL;
  if (clock)
    tell((uintptr_t)clock + 3, 0, "__vdso_clock_gettime");
}

int main(int argc, char **argv)
{
  note(__LINE__, "main");
  outer_one();
  a_static_one();
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "vdso") == 0) {
      in_vdso();
      continue;
    }
    void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    void (*run)(void (*)(int, const char *));
    if (!library) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    *(void **)&run = dlsym(library, "run_places");
    run(note);
    dlclose(library);
  }
  return 0;
}
