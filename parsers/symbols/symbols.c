/*
** The store of symbols: the addresses asked for, by module, and the answers.
** One thread.
*/
#include "parsers/symbols/symbols.h"

#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"
#include "parsers/symbols/child.h"
#include "src/base/assert.h"

enum { WANT_MAX = 1 << 26 };

/* An address that was asked for. */
struct entry {
  uint64_t address;
  struct ljp_symbol symbol; /* count 0: nothing is known. */
  bool settled;             /* Looked up, or embedded. */
};

/* An embedded level. */
struct embedded {
  uint64_t address;
  uint64_t level;
  struct ljp_symbol_frame frame;
};

/* One of all functions of a module. */
struct function {
  uint64_t address;
  const char *name;
};

struct module {
  char *path, *build_id;
  uint32_t build_id_len;
  uint64_t span, flags;
  struct entry *entries; /* The first `sorted` by address, each once. */
  size_t count, room, sorted;
  struct embedded *embedded;
  uint32_t embedded_count, embedded_room;
  struct function *functions; /* By address, once they are resolved. */
  uint32_t function_count, function_room;
  bool wants_functions;
};

struct piece {
  struct piece *next;
  size_t used, size;
  uint64_t data[];
};

struct ljp_symbols {
  struct ljp_symbols_options options;
  struct module *modules; /* Handle: place + 1. */
  uint32_t count, room;
  struct piece *pieces; /* Memory of strings and frames. */
  const char **strings; /* Hash table; at most half full. */
  size_t string_count, string_slots;
  char **notices;
  size_t notice_count;
  bool no_memory; /* Allocation failed while answers came in. */
};

struct ljp_symbols *ljp_symbols_new(const struct ljp_symbols_options *options)
{
  struct ljp_symbols *s = calloc(1, sizeof *s);
  if (s && options)
    s->options = *options;
  return s;
}

void ljp_symbols_free(struct ljp_symbols *s)
{
  if (!s)
    return;
  for (size_t i = 0; i < s->count; i++) {
    free(s->modules[i].path);
    free(s->modules[i].build_id);
    free(s->modules[i].entries);
    free(s->modules[i].embedded);
    free(s->modules[i].functions);
  }
  while (s->pieces) {
    struct piece *next = s->pieces->next;
    free(s->pieces);
    s->pieces = next;
  }
  for (size_t i = 0; i < s->notice_count; i++)
    free(s->notices[i]);
  free(s->notices);
  free(s->modules);
  free(s->strings);
  free(s);
}

static void *symbols_alloc(struct ljp_symbols *s, size_t size)
{
  struct piece *piece = s->pieces;
  size = (size + 7) & ~(size_t)7;
  if (!piece || piece->size - piece->used < size) {
    size_t room = size > 65536 ? size : 65536;
    piece = malloc(sizeof *piece + room);
    if (!piece) {
      s->no_memory = true;
      return NULL;
    }
    *piece = (struct piece){.next = s->pieces, .size = room};
    s->pieces = piece;
  }
  void *p = (char *)piece->data + piece->used;
  piece->used += size;
  return p;
}

static const char **symbols_string_slot(const char **slots, size_t count,
                                        const char *text, size_t len)
{
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < len; i++)
    hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
  size_t i = (size_t)(hash ^ hash >> 32) & (count - 1);
  while (slots[i] && (strncmp(slots[i], text, len) != 0 || slots[i][len]))
    i = (i + 1) & (count - 1);
  return &slots[i];
}

static bool symbols_grow_strings(struct ljp_symbols *s)
{
  size_t count = s->string_slots ? s->string_slots * 2 : 64;
  const char **slots = calloc(count, sizeof *slots);
  if (!slots)
    return false;
  for (size_t i = 0; i < s->string_slots; i++)
    if (s->strings[i])
      *symbols_string_slot(slots, count, s->strings[i], strlen(s->strings[i])) =
          s->strings[i];
  free(s->strings);
  s->strings = slots;
  s->string_slots = count;
  return true;
}

/* The one copy of a string; "" and s->no_memory if there is no memory. */
static const char *symbols_intern(struct ljp_symbols *s, const char *text,
                                  size_t len)
{
  const char *nul = len ? memchr(text, 0, len) : NULL;
  if (nul)
    len = (size_t)(nul - text);
  if (!len)
    return "";
  if (s->string_count * 2 >= s->string_slots && !symbols_grow_strings(s)) {
    s->no_memory = true;
    return "";
  }
  const char **slot =
      symbols_string_slot(s->strings, s->string_slots, text, len);
  char *copy = *slot ? NULL : symbols_alloc(s, len + 1);
  if (copy) {
    memcpy(copy, text, len);
    copy[len] = '\0';
    *slot = copy;
    s->string_count++;
  }
  return *slot ? *slot : "";
}

uint32_t ljp_symbols_module(struct ljp_symbols *s, struct ljp_str path,
                            struct ljp_str build_id, uint64_t span,
                            uint64_t flags)
{
  for (size_t i = 0; i < s->count; i++) {
    const struct module *m = &s->modules[i];
    if (m->build_id_len == build_id.len && m->flags == flags &&
        m->span == span && strlen(m->path) == path.len &&
        (!path.len || !memcmp(m->path, path.data, path.len)) &&
        (!build_id.len || !memcmp(m->build_id, build_id.data, build_id.len)))
      return (uint32_t)i + 1;
  }
  if (s->count >= UINT32_MAX - 1 ||
      !ljp_array_reserve(&s->modules, s->count, &s->room, sizeof *s->modules))
    return 0;
  struct module *m = &s->modules[s->count];
  *m = (struct module){
      .build_id_len = build_id.len, .span = span, .flags = flags};
  m->path = strndup(path.len ? path.data : "", path.len);
  m->build_id = malloc(build_id.len + 1);
  if (!m->path || !m->build_id) {
    free(m->path);
    free(m->build_id);
    return 0;
  }
  if (build_id.len)
    memcpy(m->build_id, build_id.data, build_id.len);
  return (uint32_t)++s->count;
}

static struct module *symbols_module_at(const struct ljp_symbols *s,
                                        uint32_t handle)
{
  return handle && handle <= s->count ? &s->modules[handle - 1] : NULL;
}

enum ljp_status ljp_symbols_embedded(struct ljp_symbols *s, uint32_t handle,
                                     uint64_t address, uint64_t level,
                                     uint32_t line, struct ljp_str function,
                                     struct ljp_str file)
{
  struct module *m = symbols_module_at(s, handle);
  if (!m)
    return LJP_ERR_USE;
  if (level >= LJP_SYM_FRAMES_MAX || m->embedded_count == WANT_MAX)
    return LJP_ERR_LIMIT;
  if (!ljp_array_reserve(&m->embedded, m->embedded_count, &m->embedded_room,
                         sizeof *m->embedded))
    return LJP_ERR_MEM;
  s->no_memory = false;
  m->embedded[m->embedded_count++] =
      (struct embedded){address,
                        level,
                        {symbols_intern(s, function.data, function.len),
                         symbols_intern(s, file.data, file.len), line}};
  return s->no_memory ? LJP_ERR_MEM : LJP_OK;
}

static int symbols_by_address(const void *a, const void *b)
{
  const struct entry *x = a, *y = b;
  if (x->address != y->address)
    return x->address < y->address ? -1 : 1;
  return y->settled - x->settled; /* Settled ones first. */
}

static int symbols_by_level(const void *a, const void *b)
{
  const struct embedded *x = a, *y = b;
  if (x->address != y->address)
    return x->address < y->address ? -1 : 1;
  return x->level < y->level ? -1 : x->level > y->level;
}

static void symbols_sort_module(struct module *m)
{
  size_t kept = 0;
  if (m->sorted == m->count)
    return;
  qsort(m->entries, m->count, sizeof *m->entries, symbols_by_address);
  for (size_t i = 0; i < m->count; i++)
    if (!kept || m->entries[kept - 1].address != m->entries[i].address)
      m->entries[kept++] = m->entries[i];
  m->count = m->sorted = kept;
  ljp_assert(m->count <= m->room);
}

enum ljp_status ljp_symbols_want(struct ljp_symbols *s, uint32_t handle,
                                 uint64_t address)
{
  struct module *m = symbols_module_at(s, handle);
  if (!m)
    return LJP_ERR_USE;
  if (m->count && m->entries[m->count - 1].address == address)
    return LJP_OK;
  if (m->count == m->room) {
    /* Addresses that were asked for repeatedly free some room here. */
    symbols_sort_module(m);
    if (m->count >= (m->room + 1) / 2) {
      if (m->room >= WANT_MAX)
        return LJP_ERR_LIMIT;
      size_t room = m->room ? m->room * 2 : 16;
      void *grown = realloc(m->entries, room * sizeof *m->entries);
      if (!grown)
        return LJP_ERR_MEM;
      m->entries = grown;
      m->room = room;
    }
  }
  m->entries[m->count++] = (struct entry){.address = address};
  return LJP_OK;
}

static struct entry *symbols_find(const struct module *m, uint64_t address)
{
  size_t low = 0, high = m->sorted;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (m->entries[mid].address < address)
      low = mid + 1;
    else
      high = mid;
  }
  return low < m->sorted && m->entries[low].address == address
             ? &m->entries[low]
             : NULL;
}

/* Turns embedded levels 0, 1 ... into answers. A missing level, whose block was
** lost, ends them. A single level without names says that nothing was known. */
static void symbols_settle_embedded(struct ljp_symbols *s, struct module *m)
{
  struct embedded *list = m->embedded;
  if (m->embedded_count)
    qsort(list, m->embedded_count, sizeof *list, symbols_by_level);
  for (size_t i = 0, n; i < m->embedded_count; i += n) {
    uint32_t levels = 0;
    for (n = 0;
         i + n < m->embedded_count && list[i + n].address == list[i].address;
         n++)
      if (list[i + n].level == levels)
        list[i + levels++].frame = list[i + n].frame;
    struct entry *entry = symbols_find(m, list[i].address);
    if (!entry || entry->settled || !levels)
      continue;
    if (levels == 1 && !*list[i].frame.function && !*list[i].frame.file) {
      entry->settled = true;
      continue;
    }
    struct ljp_symbol_frame *frames = symbols_alloc(s, levels * sizeof *frames);
    if (!frames)
      return;
    for (uint32_t k = 0; k < levels; k++)
      frames[k] = list[i + k].frame;
    entry->symbol = (struct ljp_symbol){levels, frames};
    entry->settled = true;
  }
}

/* The addresses of a module that are being looked up. */
struct asking {
  struct ljp_symbols *symbols;
  struct module *module;
  uint64_t *addresses;
};

static void symbols_take_answer(void *ctx, size_t index,
                                const struct ljp_symbol_frame *frames,
                                unsigned count)
{
  struct asking *asking = ctx;
  struct ljp_symbols *s = asking->symbols;
  struct entry *entry = symbols_find(asking->module, asking->addresses[index]);
  if (!entry || entry->symbol.count)
    return;
  struct ljp_symbol_frame *copy = symbols_alloc(s, count * sizeof *copy);
  if (!copy)
    return;
  for (unsigned i = 0; i < count; i++)
    copy[i] = (struct ljp_symbol_frame){
        symbols_intern(s, frames[i].function, strlen(frames[i].function)),
        symbols_intern(s, frames[i].file, strlen(frames[i].file)),
        frames[i].line};
  entry->symbol = (struct ljp_symbol){count, copy};
}

static void symbols_take_function(void *ctx, uint64_t address, const char *name)
{
  struct asking *asking = ctx;
  struct module *m = asking->module;
  if (m->function_count >= LJP_SYM_NAMES_MAX)
    return;
  if (!ljp_array_reserve(&m->functions, m->function_count, &m->function_room,
                         sizeof *m->functions))
    asking->symbols->no_memory = true;
  else
    m->functions[m->function_count++] = (struct function){
        address, symbols_intern(asking->symbols, name, strlen(name))};
}

static void symbols_take_notice(void *ctx, const char *text)
{
  struct ljp_symbols *s = ((struct asking *)ctx)->symbols;
  for (size_t i = 0; i < s->notice_count; i++)
    if (strcmp(s->notices[i], text) == 0)
      return;
  char **grown =
      realloc(s->notices, (s->notice_count + 1) * sizeof *s->notices);
  if (!grown)
    return;
  s->notices = grown;
  if ((grown[s->notice_count] = strdup(text)))
    s->notice_count++;
}

static bool symbols_ask(struct ljp_symbols *s, struct module *m,
                        struct asking *asking, struct ljp_sym_job *job)
{
  size_t open = 0;
  *asking = (struct asking){s, m, NULL};
  for (size_t i = 0; i < m->count; i++)
    open += !m->entries[i].settled;
  *job = (struct ljp_sym_job){
      .request = {.path = m->path,
                  .build_id = (const uint8_t *)m->build_id,
                  .build_id_len = m->build_id_len,
                  .span = m->span,
                  .flags = m->flags,
                  .count = open,
                  .functions = m->wants_functions},
      .sink = {asking, symbols_take_answer, symbols_take_notice,
               symbols_take_function}};
  if (!open)
    return true;
  asking->addresses = malloc(open * sizeof *asking->addresses);
  if (!asking->addresses)
    return false;
  open = 0;
  for (size_t i = 0; i < m->count; i++)
    if (!m->entries[i].settled)
      asking->addresses[open++] = m->entries[i].address;
  job->request.addresses = asking->addresses;
  return true;
}

static int symbols_by_start(const void *a, const void *b)
{
  const struct function *x = a, *y = b;
  return x->address < y->address ? -1 : x->address > y->address;
}

enum ljp_status ljp_symbols_resolve(struct ljp_symbols *s)
{
  struct ljp_sym_job *jobs = calloc(s->count + 1, sizeof *jobs);
  struct asking *asking = calloc(s->count + 1, sizeof *asking);
  size_t count = 0;
  bool ok = jobs && asking, ran = true;
  s->no_memory = false;
  for (size_t i = 0; ok && i < s->count; i++) {
    struct module *m = &s->modules[i];
    symbols_sort_module(m);
    symbols_settle_embedded(s, m);
    ok = symbols_ask(s, m, &asking[count], &jobs[count]);
    count += ok && (jobs[count].request.count || jobs[count].request.functions);
  }
  if (ok && count && !s->options.no_files)
    ran = ljp_sym_run(&s->options, jobs, count);
  if (!ran)
    symbols_take_notice(&asking[0],
                        "machine code has no names: the process that reads"
                        " its files could not be started");
  for (size_t i = 0; ok && ran && i < s->count; i++) {
    for (size_t k = 0; k < s->modules[i].count; k++)
      s->modules[i].entries[k].settled = true;
    s->modules[i].wants_functions = false;
    if (s->modules[i].function_count)
      qsort(s->modules[i].functions, s->modules[i].function_count,
            sizeof *s->modules[i].functions, symbols_by_start);
  }
  for (size_t i = 0; asking && i <= count && i < s->count; i++)
    free(asking[i].addresses);
  free(asking);
  free(jobs);
  if (!ran)
    return LJP_ERR_IO;
  return ok && !s->no_memory ? LJP_OK : LJP_ERR_MEM;
}

const struct ljp_symbol *ljp_symbols_get(const struct ljp_symbols *s,
                                         uint32_t handle, uint64_t address)
{
  const struct module *m = symbols_module_at(s, handle);
  const struct entry *entry = m ? symbols_find(m, address) : NULL;
  return entry && entry->settled ? &entry->symbol : NULL;
}

const struct ljp_symbol *ljp_symbols_each(const struct ljp_symbols *s,
                                          uint32_t handle, size_t n,
                                          uint64_t *address)
{
  const struct module *m = symbols_module_at(s, handle);
  if (!m || n >= m->sorted)
    return NULL;
  *address = m->entries[n].address;
  return &m->entries[n].symbol;
}

enum ljp_status ljp_symbols_want_functions(struct ljp_symbols *s,
                                           uint32_t handle)
{
  struct module *m = symbols_module_at(s, handle);
  if (m)
    m->wants_functions = true;
  return m ? LJP_OK : LJP_ERR_USE;
}

const char *ljp_symbols_function(const struct ljp_symbols *s, uint32_t handle,
                                 size_t n, uint64_t *address)
{
  const struct module *m = symbols_module_at(s, handle);
  if (!m || n >= m->function_count)
    return NULL;
  *address = m->functions[n].address;
  return m->functions[n].name;
}

const char *ljp_symbols_notice(const struct ljp_symbols *s, size_t n)
{
  return n < s->notice_count ? s->notices[n] : NULL;
}
