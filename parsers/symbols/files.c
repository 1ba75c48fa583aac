/*
** Finds the files with a module's symbols: its own file, and a debug file by
** build-id, by .gnu_debuglink, or from debuginfod. A file that is not the one
** that ran is never used. That is decided by build-ids; if the profile has
** none, by sizes; for a file by debuglink, by the checksum in the debuglink.
** Runs in the child (lookup.h).
*/
#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "parsers/symbols/files.h"

enum { PATH_ROOM = 8192, HEX_ROOM = 2 * 64 + 1 };

struct search {
  const struct ljp_symbols_options *options;
  const struct ljp_sym_request *request;
  const struct ljp_sym_sink *sink;
  char why[PATH_ROOM]; /* Why the first candidate is not used. */
};

static void files_hex(const uint8_t *id, size_t len, char out[HEX_ROOM])
{
  size_t n = len < 64 ? len : 64;
  for (size_t i = 0; i < n; i++)
    snprintf(out + 2 * i, 3, "%02x", id[i]);
  out[2 * n] = '\0';
}

__attribute__((format(printf, 2, 3))) static void
files_notice(const struct ljp_sym_sink *sink, const char *format, ...)
{
  char text[PATH_ROOM];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  sink->notice(sink->ctx, text);
}

__attribute__((format(printf, 2, 3))) static void
files_set_reason(struct search *search, const char *format, ...)
{
  va_list args;
  if (search->why[0])
    return;
  va_start(args, format);
  vsnprintf(search->why, sizeof search->why, format, args);
  va_end(args);
}

static void files_close(struct ljp_sym_file *file)
{
  if (file->elf)
    elf_end(file->elf);
  if (file->fd >= 0)
    close(file->fd);
  *file = (struct ljp_sym_file){.fd = -1};
}

/* Opens regular files only: opening a file that a profile names must not block
** or have side effects. */
static int files_open_regular(const char *path, off_t *size)
{
  struct stat st;
  if (stat(path, &st) != 0)
    return -1;
  if (!S_ISREG(st.st_mode)) {
    errno = EINVAL;
    return -1;
  }
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0)
    return -1;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
      st.st_size > LJP_SYM_FILE_MAX) {
    close(fd);
    errno = EFBIG;
    return -1;
  }
  *size = st.st_size;
  return fd;
}

static bool files_open_fd(struct ljp_sym_file *file, int fd)
{
  *file = (struct ljp_sym_file){.fd = fd};
  file->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
  GElf_Ehdr ehdr;
  if (file->elf && elf_kind(file->elf) == ELF_K_ELF &&
      gelf_getehdr(file->elf, &ehdr) &&
      (ehdr.e_type == ET_EXEC || ehdr.e_type == ET_DYN))
    return true;
  files_close(file);
  return false;
}

static bool files_open_path(struct ljp_sym_file *file, const char *path)
{
  off_t size;
  int fd = files_open_regular(path, &size);
  return fd >= 0 && files_open_fd(file, fd);
}

/* The number of bytes that the file takes in memory. */
static uint64_t files_span(Elf *elf)
{
  size_t count;
  uint64_t low = UINT64_MAX, high = 0;
  if (elf_getphdrnum(elf, &count) != 0)
    return 0;
  for (size_t i = 0; i < count && i < 65536; i++) {
    GElf_Phdr ph;
    if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD)
      continue;
    low = ph.p_vaddr < low ? ph.p_vaddr : low;
    if (ph.p_vaddr + ph.p_memsz > high)
      high = ph.p_vaddr + ph.p_memsz;
  }
  return low < high ? high - low : 0;
}

/* Whether the file is the one that ran. */
static bool files_match(struct search *search, Elf *elf, const char *path)
{
  const struct ljp_sym_request *r = search->request;
  const void *id;
  ssize_t len = dwelf_elf_gnu_build_id(elf, &id);
  if (len < 0)
    len = 0;
  if (r->build_id_len) {
    if ((size_t)len == r->build_id_len && !memcmp(id, r->build_id, len))
      return true;
    char has[HEX_ROOM] = "none", ran[HEX_ROOM];
    if (len > 0)
      files_hex(id, (size_t)len, has);
    files_hex(r->build_id, r->build_id_len, ran);
    files_set_reason(
        search,
        "%s: its build-id is %s, that of the file that ran is %s: not used",
        path, has, ran);
    return false;
  }
  if (!len && r->span && files_span(elf) == r->span)
    return true;
  files_set_reason(
      search, "%s: nothing shows that it is the file that ran: not used", path);
  return false;
}

static bool files_try_own(struct search *search, struct ljp_sym_file *file,
                          const char *path)
{
  errno = 0;
  if (!files_open_path(file, path)) {
    files_set_reason(search, "%s: %s", path,
                     errno == EINVAL ? "not a regular file"
                     : errno         ? strerror(errno)
                                     : "not a program or library");
    return false;
  }
  if (files_match(search, file->elf, path))
    return true;
  files_close(file);
  return false;
}

/* The n-th folder of a list separated by colons; false: there are fewer. */
static bool files_folder(const char *list, unsigned n, char out[PATH_ROOM])
{
  for (; list; list = strchr(list, ':'), list = list ? list + 1 : NULL) {
    size_t len = strcspn(list, ":");
    if (!len || len >= PATH_ROOM)
      continue;
    if (n--)
      continue;
    memcpy(out, list, len);
    out[len] = '\0';
    return true;
  }
  return false;
}

static const char *files_debug_path(const struct search *search)
{
  const char *path = search->options->debug_path;
  if (!path)
    path = getenv("LJPROF_DEBUG_PATH");
  return path ? path : "/usr/lib/debug";
}

static const char *files_base_name(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* Opens the vDSO of the running kernel if it is the recorded one. */
static void files_open_vdso(struct search *search, struct ljp_sym_file *file)
{
  unsigned long lo = 0, hi = 0;
  char line[512];
  FILE *maps = fopen("/proc/self/maps", "re");
  while (maps && fgets(line, sizeof line, maps)) {
    char *end;
    if (!strstr(line, "[vdso]"))
      continue;
    lo = strtoul(line, &end, 16);
    hi = *end == '-' ? strtoul(end + 1, NULL, 16) : 0;
    break;
  }
  if (maps)
    fclose(maps);
  if (lo >= hi)
    return;
  file->elf = elf_memory((char *)lo, hi - lo);
  if (file->elf && !files_match(search, file->elf, "[vdso]"))
    files_close(file);
}

static void files_find_own(struct search *search, struct ljp_sym_file *file)
{
  const struct ljp_sym_request *r = search->request;
  char dir[PATH_ROOM], path[2 * PATH_ROOM];
  if (r->flags & LJP_MODULE_VDSO) {
    files_open_vdso(search, file);
    return;
  }
  if (!*r->path || files_try_own(search, file, r->path))
    return;
  /* The kernel's name for a program that was replaced while it ran. */
  size_t len = strlen(r->path);
  if (len > 10 && strcmp(r->path + len - 10, " (deleted)") == 0) {
    snprintf(path, sizeof path, "%.*s", (int)(len - 10), r->path);
    if (files_try_own(search, file, path))
      return;
  }
  for (unsigned n = 0; files_folder(files_debug_path(search), n, dir); n++) {
    snprintf(path, sizeof path, "%s/%s", dir, r->path);
    if (files_try_own(search, file, path))
      return;
    snprintf(path, sizeof path, "%s/%s", dir, files_base_name(r->path));
    if (files_try_own(search, file, path))
      return;
  }
}

/* Whether a file has a symbol table and DWARF. */
static void files_contents(Elf *elf, bool *symtab, bool *dwarf)
{
  size_t names;
  Elf_Scn *scn = NULL;
  *symtab = *dwarf = false;
  if (elf_getshdrstrndx(elf, &names) != 0)
    return;
  while ((scn = elf_nextscn(elf, scn))) {
    GElf_Shdr sh;
    if (!gelf_getshdr(scn, &sh) || sh.sh_type == SHT_NOBITS)
      continue;
    const char *name = elf_strptr(elf, names, sh.sh_name);
    *symtab |= sh.sh_type == SHT_SYMTAB;
    *dwarf |=
        name && (!strcmp(name, ".debug_info") || !strcmp(name, ".zdebug_info"));
  }
}

static bool files_try_debug(struct search *search, struct ljp_sym_file *file,
                            const char *path)
{
  bool symtab, dwarf;
  if (!files_open_path(file, path))
    return false;
  files_contents(file->elf, &symtab, &dwarf);
  if ((symtab || dwarf) && files_match(search, file->elf, path))
    return true;
  files_close(file);
  return false;
}

static void files_debug_by_id(struct search *search, struct ljp_sym_file *file)
{
  const struct ljp_sym_request *r = search->request;
  char dir[PATH_ROOM], id[HEX_ROOM], path[2 * PATH_ROOM];
  if (r->build_id_len < 2)
    return;
  files_hex(r->build_id, r->build_id_len, id);
  for (unsigned n = 0; files_folder(files_debug_path(search), n, dir); n++) {
    snprintf(path, sizeof path, "%s/.build-id/%.2s/%s.debug", dir, id, id + 2);
    if (files_try_debug(search, file, path))
      return;
  }
}

/* The CRC-32 of a whole file, as in debuglinks. */
static bool files_checksum(const char *path, uint32_t *crc)
{
  off_t size;
  int fd = files_open_regular(path, &size);
  ssize_t n = -1;
  uLong sum = crc32(0, NULL, 0);
  static uint8_t buf[1 << 16];
  if (fd < 0)
    return false;
  while ((n = read(fd, buf, sizeof buf)) > 0)
    sum = crc32(sum, buf, (uInt)n);
  close(fd);
  *crc = (uint32_t)sum;
  return n == 0;
}

static bool files_try_link(struct search *search, struct ljp_sym_file *file,
                           const char *path, uint32_t wanted)
{
  uint32_t crc;
  if (!files_checksum(path, &crc))
    return false;
  if (crc != wanted) {
    files_notice(search->sink,
                 "%s: its checksum is %08" PRIx32 ", the debuglink of %s wants"
                 " %08" PRIx32 ": not used",
                 path, crc, search->request->path, wanted);
    return false;
  }
  if (!files_open_path(file, path))
    return false;
  /* The file may lack a build-id; then the checksum suffices. */
  const void *id;
  ssize_t len = dwelf_elf_gnu_build_id(file->elf, &id);
  const struct ljp_sym_request *r = search->request;
  if (len <= 0 || !r->build_id_len ||
      ((size_t)len == r->build_id_len && !memcmp(id, r->build_id, len)))
    return true;
  files_close(file);
  return false;
}

static void files_debug_by_link(struct search *search, Elf *own,
                                struct ljp_sym_file *file)
{
  const char *at = search->request->path;
  char dir[PATH_ROOM], path[3 * PATH_ROOM], name[PATH_ROOM];
  GElf_Word crc;
  const char *link = own ? dwelf_elf_gnu_debuglink(own, &crc) : NULL;
  if (!link || !*link || strchr(link, '/') ||
      snprintf(name, sizeof name, "%s", link) >= (int)sizeof name)
    return;
  int len = (int)(files_base_name(at) - at);
  if (len >= PATH_ROOM)
    return;
  snprintf(path, sizeof path, "%.*s%s", len, at, name);
  if (files_try_link(search, file, path, crc))
    return;
  snprintf(path, sizeof path, "%.*s.debug/%s", len, at, name);
  if (files_try_link(search, file, path, crc))
    return;
  for (unsigned n = 0; files_folder(files_debug_path(search), n, dir); n++) {
    snprintf(path, sizeof path, "%s/%.*s%s", dir, len, at, name);
    if (files_try_link(search, file, path, crc))
      return;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (files_try_link(search, file, path, crc))
      return;
  }
}

/* debuginfod's library is loaded when it is needed: most users have not
** configured it. */
static void files_debug_by_network(struct search *search,
                                   struct ljp_sym_file *file)
{
  const struct ljp_sym_request *r = search->request;
  const char *urls = getenv("DEBUGINFOD_URLS");
  if (!urls || !*urls || !r->build_id_len || search->options->no_network)
    return;
  void *lib = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!lib) {
    files_notice(search->sink, "DEBUGINFOD_URLS is set, but there is no"
                               " libdebuginfod.so.1 (Debian: libdebuginfod1)");
    return;
  }
  void *(*begin)(void);
  int (*find)(void *, const unsigned char *, int, char **);
  void (*end)(void *);
  *(void **)&begin = dlsym(lib, "debuginfod_begin");
  *(void **)&find = dlsym(lib, "debuginfod_find_debuginfo");
  *(void **)&end = dlsym(lib, "debuginfod_end");
  unsigned left = alarm(0); /* debuginfod has its own time limits. */
  void *client = begin && find && end ? begin() : NULL;
  int fd =
      client ? find(client, r->build_id, (int)r->build_id_len, NULL) : -ENOSYS;
  if (client)
    end(client);
  alarm(left);
  if (fd >= 0 && files_open_fd(file, fd) &&
      !files_match(search, file->elf, "debuginfod's file"))
    files_close(file);
  if (fd < 0 && fd != -ENOENT)
    files_notice(search->sink, "%s: debuginfod: %s", r->path, strerror(-fd));
  /* The library stays loaded: curl, which it uses, may have started threads. */
}

void ljp_sym_files_open(struct ljp_sym_files *files,
                        const struct ljp_symbols_options *options,
                        const struct ljp_sym_request *request,
                        const struct ljp_sym_sink *sink)
{
  static struct search search;
  bool symtab = false, dwarf = false;
  search =
      (struct search){.options = options, .request = request, .sink = sink};
  files->own = files->debug = (struct ljp_sym_file){.fd = -1};
  elf_version(EV_CURRENT);
  files_find_own(&search, &files->own);
  if (!files->own.elf && search.why[0])
    files_notice(sink, "%s", search.why);
  if (files->own.elf)
    files_contents(files->own.elf, &symtab, &dwarf);
  if (symtab && dwarf) {
    files->debug.elf = files->own.elf;
    return;
  }
  files_debug_by_id(&search, &files->debug);
  if (!files->debug.elf)
    files_debug_by_link(&search, files->own.elf, &files->debug);
  if (!files->debug.elf && !(request->flags & LJP_MODULE_VDSO))
    files_debug_by_network(&search, &files->debug);
  if (!files->debug.elf && (symtab || dwarf))
    files->debug.elf = files->own.elf;
}

void ljp_sym_files_close(struct ljp_sym_files *files)
{
  if (files->debug.elf == files->own.elf)
    files->debug.elf = NULL;
  files_close(&files->debug);
  files_close(&files->own);
}
