/*
** See modules.h. A look that finds the loader's counters changed builds a new
** list. A module in both lists keeps its id.
*/
#include "src/writer/modules.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/assert.h"
#include "src/base/clock.h"
#include "src/base/format.h"
#include "src/base/lines.h"
#include "src/base/loader.h"
#include "src/base/open_file.h"
#include "src/base/own_proc.h"

enum { KEEP_GONE_NS = 2000000000 };

struct modules_look {
  struct ljp_module *list;
  size_t count, capacity;
  uint64_t adds, subs;
  enum ljp_status status;
};

/* Global because fork handlers have no argument: see ljp_modules_hold(). */
static pthread_mutex_t modules_mutex = PTHREAD_MUTEX_INITIALIZER;

void ljp_modules_hold(void)
{
  pthread_mutex_lock(&modules_mutex);
}

void ljp_modules_unhold(void)
{
  pthread_mutex_unlock(&modules_mutex);
}

void ljp_modules_renew(void)
{
  pthread_mutex_init(&modules_mutex, NULL);
}

static void modules_iterate(int (*each)(struct dl_phdr_info *, size_t, void *),
                            struct modules_look *look)
{
  ljp_modules_hold();
  ljp_loader_each(each, look);
  ljp_modules_unhold();
}

void ljp_modules_init(struct ljp_modules *m)
{
  memset(m, 0, sizeof *m);
  m->next_id = 1;
}

static void modules_free_list(struct ljp_module *list, size_t count)
{
  for (size_t i = 0; i < count; i++)
    free(list[i].path);
  free(list);
}

void ljp_modules_fini(struct ljp_modules *m)
{
  modules_free_list(m->list, m->count);
  memset(m, 0, sizeof *m);
}

static int modules_read_counters(struct dl_phdr_info *info, size_t size,
                                 void *ctx)
{
  struct modules_look *look = ctx;
  if (size >=
      offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) {
    look->adds = info->dlpi_adds;
    look->subs = info->dlpi_subs;
  }
  return 1;
}

/* The module's notes stay mapped: the loader's lock is held meanwhile. */
static void modules_read_build_id(struct ljp_module *module, const uint8_t *p,
                                  size_t len, size_t align)
{
  size_t up = align == 8 ? 7 : 3;
  while (len >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    memcpy(&note, p, sizeof note);
    size_t name = ((size_t)note.n_namesz + up) & ~up;
    size_t desc = ((size_t)note.n_descsz + up) & ~up;
    if (name > len - sizeof note || desc > len - sizeof note - name)
      return;
    const uint8_t *at = p + sizeof note;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        !memcmp(at, "GNU", 4) && note.n_descsz <= LJP_BUILD_ID_MAX_BYTES) {
      module->build_id_len = note.n_descsz;
      memcpy(module->build_id, at + name, note.n_descsz);
      return;
    }
    p = at + name + desc;
    len -= sizeof note + name + desc;
  }
}

static char *modules_path(const struct dl_phdr_info *info, bool first)
{
  char exe[4096];
  /* musl's name for a static program would mean another file to the reader. */
  if (info->dlpi_name && info->dlpi_name[0] &&
      strcmp(info->dlpi_name, "/proc/self/exe") != 0)
    return strdup(info->dlpi_name);
  ssize_t n = first ? ljp_own_proc_link("exe", exe, sizeof exe - 1) : 0;
  exe[n > 0 ? n : 0] = 0;
  return strdup(exe);
}

/* The path in a line of /proc/self/maps if its mapping has the address. */
static const char *modules_mapped(char *line, uint64_t address)
{
  static const char deleted[] = " (deleted)";
  uint64_t start, end;
  int at = 0;
  if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %n", &start, &end,
             &at) < 2 ||
      address < start || address >= end || line[at] != '/')
    return NULL;
  char *path = line + at;
  size_t len = strlen(path);
  if (len > sizeof deleted &&
      !memcmp(path + len - (sizeof deleted - 1), deleted, sizeof deleted - 1))
    len -= sizeof deleted - 1;
  path[len] = '\0';
  return path;
}

/* The loader knows a module by the path that was given to it, which may be
** relative to what was the current folder then. The kernel knows the file. */
static void modules_make_absolute(struct modules_look *look)
{
  enum { LINE_BYTES = 8192 }; /* a path has at most 4096 */
  size_t left = 0;
  for (size_t i = 0; i < look->count; i++)
    left += look->list[i].path[0] != '/' &&
            !(look->list[i].flags & LJP_MODULE_VDSO);
  char *room = left ? malloc(LINE_BYTES) : NULL, *line;
  if (!room)
    return;
  int fd = ljp_fd_not_standard(ljp_own_proc_open("maps", O_RDONLY | O_CLOEXEC));
  struct ljp_lines maps = ljp_lines_of(fd, room, LINE_BYTES);
  while ((line = ljp_lines_next(&maps)) != NULL)
    for (size_t i = 0; i < look->count; i++) {
      struct ljp_module *module = &look->list[i];
      const char *path =
          module->path[0] != '/' ? modules_mapped(line, module->start) : NULL;
      char *copy = path ? strdup(path) : NULL;
      if (copy) {
        free(module->path);
        module->path = copy;
      }
    }
  if (fd >= 0)
    close(fd);
  free(room);
}

static int modules_add(struct dl_phdr_info *info, size_t size, void *ctx)
{
  struct modules_look *look = ctx;
  bool first = look->count == 0;
  if (first)
    modules_read_counters(info, size, ctx);
  if (look->count == look->capacity) {
    size_t capacity = look->capacity ? 2 * look->capacity : 16;
    void *grown = realloc(look->list, capacity * sizeof *look->list);
    if (!grown) {
      look->status = LJP_ERR_MEM;
      return 1;
    }
    look->list = grown;
    look->capacity = capacity;
  }
  struct ljp_module *module = &look->list[look->count];
  memset(module, 0, sizeof *module);
  uint64_t low = UINT64_MAX, high = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
    if (ph->p_type == PT_LOAD) {
      low = ph->p_vaddr < low ? ph->p_vaddr : low;
      high =
          ph->p_vaddr + ph->p_memsz > high ? ph->p_vaddr + ph->p_memsz : high;
    }
  }
  if (low >= high)
    return 0;
  module->bias = info->dlpi_addr;
  module->start = info->dlpi_addr + low;
  module->end = info->dlpi_addr + high;
  for (int i = 0; i < info->dlpi_phnum && !module->build_id_len; i++) {
    const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
    if (ph->p_type == PT_NOTE)
      modules_read_build_id(module,
                            (const uint8_t *)(info->dlpi_addr + ph->p_vaddr),
                            ph->p_memsz, ph->p_align);
  }
  module->path = modules_path(info, first);
  if (!module->path) {
    look->status = LJP_ERR_MEM;
    return 1;
  }
  if (first)
    module->flags |= LJP_MODULE_MAIN;
  if (!strncmp(module->path, "linux-vdso", 10))
    module->flags |= LJP_MODULE_VDSO;
  look->count++;
  return 0;
}

static bool modules_same(const struct ljp_module *a, const struct ljp_module *b)
{
  return a->start == b->start && a->end == b->end && a->bias == b->bias &&
         a->build_id_len == b->build_id_len &&
         !memcmp(a->build_id, b->build_id, a->build_id_len) &&
         !strcmp(a->path, b->path);
}

static int modules_by_start(const void *a, const void *b)
{
  const struct ljp_module *x = a, *y = b;
  return x->start < y->start ? -1 : x->start > y->start;
}

/* Makes room for the gone modules behind the loaded ones. */
static bool modules_make_room(struct modules_look *look, size_t more)
{
  if (look->count + more <= look->capacity)
    return true;
  void *grown = realloc(look->list, (look->count + more) * sizeof *look->list);
  if (!grown)
    return false;
  look->list = grown;
  look->capacity = look->count + more;
  return true;
}

enum ljp_status ljp_modules_look(struct ljp_modules *m, uint64_t now_ns)
{
  struct modules_look look = {0};
  modules_iterate(modules_read_counters, &look);
  if (m->looked_ns && look.adds == m->adds && look.subs == m->subs) {
    for (size_t i = 0; i < m->loaded; i++)
      m->list[i].until_ns = now_ns;
    m->looked_ns = now_ns;
    return LJP_OK;
  }
  modules_iterate(modules_add, &look);
  modules_make_absolute(&look);
  if (!look.status && !modules_make_room(&look, m->count))
    look.status = LJP_ERR_MEM;
  if (look.status) {
    modules_free_list(look.list, look.count);
    return look.status;
  }
  /* The thread may have been preempted: the list may show any moment since
  ** now_ns. */
  uint64_t ended_ns = ljp_clock_ns();
  if (ended_ns < now_ns)
    ended_ns = now_ns;
  qsort(look.list, look.count, sizeof *look.list, modules_by_start);
  size_t loaded = look.count, added = 0;
  for (size_t i = 0; i < m->count; i++)
    m->list[i].seen = false;
  for (size_t i = 0; i < loaded; i++) {
    struct ljp_module *new = &look.list[i];
    struct ljp_module *old = NULL;
    for (size_t k = 0; k < m->loaded && !old; k++)
      if (modules_same(&m->list[k], new))
        old = &m->list[k];
    if (old) {
      new->id = old->id;
      new->maybe_from_ns = old->maybe_from_ns;
      new->from_ns = old->from_ns;
      old->seen = true;
    } else {
      new->id = m->next_id++;
      new->maybe_from_ns = m->looked_ns;
      new->from_ns = m->looked_ns ? now_ns : 0;
      added++;
    }
    new->until_ns = now_ns;
  }
  for (size_t i = 0; i < m->count; i++) {
    struct ljp_module *old = &m->list[i];
    if (old->seen || (old->gone_ns && now_ns > old->gone_ns + KEEP_GONE_NS)) {
      free(old->path);
      continue;
    }
    if (!old->gone_ns)
      old->gone_ns = ended_ns;
    look.list[look.count++] = *old;
  }
  /* More modules were loaded than we see: one came and went between two looks,
  ** and may have been at the addresses of a new one. */
  if (m->looked_ns && look.adds - m->adds != added)
    for (size_t i = 0; i < loaded; i++)
      if (look.list[i].from_ns == now_ns)
        look.list[i].maybe_from_ns = ended_ns;
  free(m->list);
  m->list = look.list;
  m->loaded = loaded;
  m->count = look.count;
  m->capacity = look.capacity;
  m->adds = look.adds;
  m->subs = look.subs;
  m->looked_ns = now_ns;
  m->generation++;
  return LJP_OK;
}

const struct ljp_module *ljp_modules_find(const struct ljp_modules *m,
                                          uint64_t address, uint64_t time_ns,
                                          bool *settled)
{
  const struct ljp_module *found = NULL;
  size_t low = 0, high = m->loaded, hits = 0;
  ljp_assert(m->loaded <= m->count);
  *settled = true;
  while (low < high) {
    size_t mid = (low + high) / 2;
    if (m->list[mid].end <= address)
      low = mid + 1;
    else
      high = mid;
  }
  if (low < m->loaded && m->list[low].start <= address) {
    const struct ljp_module *module = &m->list[low];
    if (time_ns >= module->maybe_from_ns) {
      found = module;
      hits++;
    } else {
      *settled = false;
    }
  }
  for (size_t i = m->loaded; i < m->count; i++) {
    const struct ljp_module *module = &m->list[i];
    if (address < module->start || address >= module->end)
      continue;
    *settled = false;
    if (time_ns <= module->gone_ns && time_ns >= module->maybe_from_ns) {
      found = module;
      hits++;
    }
  }
  return hits == 1 ? found : NULL;
}
