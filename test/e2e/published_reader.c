/*
** Reads from outside what a thread publishes, as OTEP 4947 says, and prints it:
**
**   published_reader PID [TID]   "key=value,key=value", or "-" for nothing
**
** It finds the variable by the dynamic symbols and relocations of the files that the
** process has loaded, and reads it while the thread is stopped.
*/
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "test/support/published.h"

static _Noreturn void die(const char *what)
{
  fprintf(stderr, "published_reader: %s\n", what);
  exit(1);
}

/* -- The variable: where the loader has noted it --------------------------- */
struct place {
  uint64_t descriptor; /* of TLSDESC or of the older way; 0: not found */
  bool tlsdesc;
};

static const Elf64_Shdr *reader_section(const uint8_t *file, size_t bytes,
                                        uint32_t i)
{
  const Elf64_Ehdr *head = (const void *)file;
  const uint64_t at = head->e_shoff + (uint64_t)i * sizeof(Elf64_Shdr);
  return i < head->e_shnum && at + sizeof(Elf64_Shdr) <= bytes
             ? (const void *)(file + at)
             : NULL;
}

/* The number of the dynamic symbol; 0: there is none. */
static uint32_t reader_symbol(const uint8_t *file, size_t bytes)
{
  const Elf64_Shdr *s, *names;
  for (uint32_t i = 0; (s = reader_section(file, bytes, i)) != NULL; i++) {
    if (s->sh_type != SHT_DYNSYM ||
        !(names = reader_section(file, bytes, s->sh_link)))
      continue;
    const Elf64_Sym *symbol = (const void *)(file + s->sh_offset);
    for (uint32_t k = 0; k < s->sh_size / sizeof *symbol; k++)
      if (symbol[k].st_shndx != SHN_UNDEF &&
          strcmp((const char *)file + names->sh_offset + symbol[k].st_name,
                 "otel_thread_ctx_v1") == 0) {
        if (ELF64_ST_TYPE(symbol[k].st_info) != STT_TLS ||
            symbol[k].st_size != 8)
          die("the symbol is no thread-local pointer");
        return k;
      }
  }
  return 0;
}

static struct place reader_relocation(const uint8_t *file, size_t bytes,
                                      uint32_t symbol)
{
  const Elf64_Shdr *s;
  for (uint32_t i = 0; (s = reader_section(file, bytes, i)) != NULL; i++) {
    if (s->sh_type != SHT_RELA)
      continue;
    const Elf64_Rela *r = (const void *)(file + s->sh_offset);
    for (uint32_t k = 0; k < s->sh_size / sizeof *r; k++)
      if (ELF64_R_SYM(r[k].r_info) == symbol &&
          (ELF64_R_TYPE(r[k].r_info) == R_X86_64_TLSDESC ||
           ELF64_R_TYPE(r[k].r_info) == R_X86_64_DTPMOD64))
        return (struct place){r[k].r_offset,
                              ELF64_R_TYPE(r[k].r_info) == R_X86_64_TLSDESC};
  }
  die("the symbol has no relocation that readers know");
}

static struct place reader_look(const char *path)
{
  struct place place = {0, false};
  struct stat st;
  int fd = open(path, O_RDONLY);
  if (fd < 0)
    return place;
  const uint8_t *file = MAP_FAILED;
  if (fstat(fd, &st) == 0 && st.st_size > (off_t)sizeof(Elf64_Ehdr))
    file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (file == MAP_FAILED || memcmp(file, ELFMAG, SELFMAG) != 0)
    return place;
  uint32_t symbol = reader_symbol(file, (size_t)st.st_size);
  if (symbol)
    place = reader_relocation(file, (size_t)st.st_size, symbol);
  return place;
}

static struct place reader_find(pid_t pid)
{
  char name[64], line[1024];
  struct place place = {0, false};
  snprintf(name, sizeof name, "/proc/%d/maps", (int)pid);
  FILE *maps = fopen(name, "r");
  while (maps && !place.descriptor && fgets(line, sizeof line, maps)) {
    unsigned long long start, offset;
    char path[1000];
    if (sscanf(line, "%llx-%*x %*s %llx %*s %*s %999s", &start, &offset,
               path) == 3 &&
        offset == 0 && path[0] == '/' && path[1] != 'd') {
      place = reader_look(path);
      place.descriptor += place.descriptor ? start : 0;
    }
  }
  if (maps)
    fclose(maps);
  if (!place.descriptor)
    die("no file of the process exports the variable");
  return place;
}

/* -- The thread ------------------------------------------------------------ */
static uint64_t reader_word(pid_t pid, uint64_t at)
{
  uint64_t word;
  if (!published_read(pid, at, &word, sizeof word))
    die("the process's memory cannot be read");
  return word;
}

/* The address of the variable for a thread pointer. */
static uint64_t reader_variable(pid_t pid, struct place place, uint64_t fs)
{
  uint64_t argument = reader_word(pid, place.descriptor + 8);
  uint64_t module = reader_word(pid, place.descriptor);
  if (place.tlsdesc && (int64_t)argument <= 0xffffffff)
    return fs + argument;
  if (place.tlsdesc) {
    module = reader_word(pid, argument);
    argument = reader_word(pid, argument + 8);
  }
  /* glibc: the vector of a thread has 16 bytes for each module. */
  return reader_word(pid, reader_word(pid, fs + 8) + 16 * module) + argument;
}

int main(int argc, char **argv)
{
  static struct published_context context;
  static char text[PUBLISHED_TEXT] = "-";
  struct user_regs_struct regs;
  int status;
  if (argc < 2)
    die("usage: published_reader PID [TID]");
  const pid_t pid = atoi(argv[1]), tid = atoi(argv[argc - 1]);
  struct place place = reader_find(pid);
  if (ptrace(PTRACE_SEIZE, tid, 0, 0) || ptrace(PTRACE_INTERRUPT, tid, 0, 0) ||
      waitpid(tid, &status, __WALL) != tid ||
      ptrace(PTRACE_GETREGS, tid, 0, &regs))
    die(strerror(errno));
  uint64_t record = reader_word(pid, reader_variable(pid, place, regs.fs_base));
  const char *wrong = published_read_context(pid, &context);
  if (record && wrong)
    die(wrong);
  if (record && !published_labels(pid, record, &context, text))
    die(text);
  ptrace(PTRACE_DETACH, tid, 0, 0);
  printf("%s\n", text);
  return 0;
}
