/*
** Lines and inlined functions from DWARF. Addresses are assigned to units by
** the ranges of the units (.debug_aranges may be missing or wrong). The tree of
** each such unit is walked once; functions that contain none of the addresses
** are skipped. Depth and steps are bounded, since the links of a tree may form
** circles. Runs in the child (lookup.h).
*/
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/symbols/demangle.h"
#include "parsers/symbols/dwarf_lines.h"

enum { DEPTH_MAX = 256, RANGES_MAX = 1 << 24, PIECES_MAX = 1 << 16 };
#define STEPS_MAX 200000000u /* Tree entries visited in a file. */

struct range {
  uint64_t start, end;
  size_t unit;
};

/* A function, inlined or not, that contains an address. */
struct inlined {
  struct inlined *next_made; /* All of a unit, to free them. */
  struct inlined *outer;     /* The function around it; NULL: not inlined. */
  Dwarf_Off offset;          /* Of its entry. */
  const char *name;          /* Allocated. */
  const char *call_file;     /* Where it was called; memory of libdw. */
  uint32_t call_line;
};

struct wanted {
  uint64_t address;
  size_t index; /* In the request. */
  size_t unit;
  struct inlined *chain;
};

struct walk {
  struct wanted *wanted; /* The unit's addresses, ascending. */
  size_t count;
  Dwarf_Files *files;
  size_t file_count;
  struct inlined *made;
  uint64_t *steps;
};

static const char *lines_name(Dwarf_Die *die)
{
  char pretty[LJP_SYM_NAME_MAX];
  Dwarf_Attribute attr;
  const char *name = NULL;
  if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
      dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
    name = dwarf_formstring(&attr);
  if (!name)
    name = dwarf_diename(die);
  ljp_sym_demangle(name ? name : "", pretty);
  return strdup(pretty);
}

static uint32_t lines_number(Dwarf_Die *die, unsigned at)
{
  Dwarf_Attribute attr;
  Dwarf_Word value;
  if (!dwarf_attr(die, at, &attr) || dwarf_formudata(&attr, &value) != 0 ||
      value > UINT32_MAX)
    return 0;
  return (uint32_t)value;
}

static struct inlined *lines_make_inlined(struct walk *walk, Dwarf_Die *die,
                                          struct inlined *outer)
{
  struct inlined *inlined = calloc(1, sizeof *inlined);
  if (!inlined)
    return NULL;
  inlined->offset = dwarf_dieoffset(die);
  inlined->name = lines_name(die);
  inlined->outer = outer;
  if (outer) {
    uint32_t file = lines_number(die, DW_AT_call_file);
    inlined->call_line = lines_number(die, DW_AT_call_line);
    if (file < walk->file_count)
      inlined->call_file = dwarf_filesrc(walk->files, file, NULL, NULL);
  }
  inlined->next_made = walk->made;
  walk->made = inlined;
  return inlined;
}

/* The place of the first wanted address that is not below `address`. */
static size_t lines_lower_bound(const struct walk *walk, uint64_t address)
{
  size_t low = 0, high = walk->count;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (walk->wanted[mid].address < address)
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

/* Adds a function to the chain of each wanted address that it contains. Returns
** whether there is such an address. */
static bool lines_add_function(struct walk *walk, Dwarf_Die *die,
                               bool is_inlined)
{
  Dwarf_Addr base, start, end;
  ptrdiff_t offset = 0;
  bool any = false;
  struct inlined *last = NULL;
  for (int i = 0; i < PIECES_MAX; i++) {
    offset = dwarf_ranges(die, offset, &base, &start, &end);
    if (offset <= 0)
      break;
    for (size_t w = lines_lower_bound(walk, start);
         w < walk->count && walk->wanted[w].address < end; w++) {
      struct inlined *outer = is_inlined ? walk->wanted[w].chain : NULL;
      if (is_inlined && !outer)
        continue; /* Not in any function. */
      if (!last || last->outer != outer)
        last = lines_make_inlined(walk, die, outer);
      if (!last)
        return any;
      walk->wanted[w].chain = last;
      any = true;
    }
  }
  return any;
}

/* Visits an entry. Returns whether wanted functions may be below it. */
static bool lines_enter(struct walk *walk, Dwarf_Die *die)
{
  switch (dwarf_tag(die)) {
  case DW_TAG_subprogram:
    return lines_add_function(walk, die, false);
  case DW_TAG_inlined_subroutine:
    return lines_add_function(walk, die, true);
  case DW_TAG_lexical_block:
  case DW_TAG_try_block:
  case DW_TAG_catch_block:
  case DW_TAG_namespace:
  case DW_TAG_module:
  case DW_TAG_structure_type: /* Languages other than C put functions there. */
  case DW_TAG_class_type:
    return true;
  default:
    return false;
  }
}

static void lines_walk_tree(struct walk *walk, Dwarf_Die *unit)
{
  Dwarf_Die *path = calloc(DEPTH_MAX, sizeof *path);
  int depth = 0;
  if (!path || dwarf_child(unit, &path[0]) != 0) {
    free(path);
    return;
  }
  while (depth >= 0 && ++*walk->steps < STEPS_MAX) {
    Dwarf_Die *die = &path[depth];
    if (lines_enter(walk, die) && depth + 1 < DEPTH_MAX &&
        dwarf_child(die, &path[depth + 1]) == 0) {
      depth++;
      continue;
    }
    for (; depth >= 0; depth--) {
      Dwarf_Die next;
      Dwarf_Off at = dwarf_dieoffset(&path[depth]);
      if (dwarf_siblingof(&path[depth], &next) != 0)
        continue;
      if (dwarf_dieoffset(&next) <= at) { /* A circle. */
        depth = -1;
        break;
      }
      path[depth] = next;
      break;
    }
  }
  free(path);
}

static void lines_tell(const struct walk *walk, Dwarf_Die *unit,
                       void (*each)(void *, size_t,
                                    const struct ljp_symbol_frame *, unsigned),
                       void *ctx)
{
  static struct ljp_symbol_frame frames[LJP_SYM_FRAMES_MAX];
  for (size_t w = 0; w < walk->count; w++) {
    struct wanted *wanted = &walk->wanted[w];
    Dwarf_Line *line = dwarf_getsrc_die(unit, wanted->address);
    int number = 0;
    unsigned count = 0;
    const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
    if (line)
      dwarf_lineno(line, &number);
    if (number < 0)
      number = 0;
    if (!file && !wanted->chain)
      continue;
    frames[count++] =
        (struct ljp_symbol_frame){"", file ? file : "", (uint32_t)number};
    for (struct inlined *at = wanted->chain; at; at = at->outer) {
      frames[count - 1].function = at->name ? at->name : "";
      if (!at->outer || count == LJP_SYM_FRAMES_MAX)
        break;
      frames[count++] = (struct ljp_symbol_frame){
          "", at->call_file ? at->call_file : "", at->call_line};
    }
    each(ctx, wanted->index, frames, count);
  }
}

static int lines_by_start(const void *a, const void *b)
{
  const struct range *x = a, *y = b;
  if (x->start != y->start)
    return x->start < y->start ? -1 : 1;
  return x->unit < y->unit ? -1 : x->unit > y->unit;
}

static int lines_by_unit(const void *a, const void *b)
{
  const struct wanted *x = a, *y = b;
  if (x->unit != y->unit)
    return x->unit < y->unit ? -1 : 1;
  return x->address < y->address ? -1 : x->address > y->address;
}

struct units {
  struct range *ranges;
  size_t range_count, range_room;
  Dwarf_Die *dies;
  size_t count, room;
};

static bool lines_grow(void **list, size_t *room, size_t count, size_t each)
{
  if (count < *room)
    return true;
  size_t more = *room ? *room * 2 : 256;
  void *grown = more > RANGES_MAX ? NULL : realloc(*list, more * each);
  if (!grown)
    return false;
  *list = grown;
  *room = more;
  return true;
}

static void lines_add_unit(struct units *units, Dwarf_Die *die, Dwarf_Die *code)
{
  Dwarf_Addr base, start, end;
  ptrdiff_t offset = 0;
  if (!lines_grow((void **)&units->dies, &units->room, units->count,
                  sizeof *units->dies))
    return;
  units->dies[units->count] = *code;
  while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
    if (start >= end)
      continue;
    if (!lines_grow((void **)&units->ranges, &units->range_room,
                    units->range_count, sizeof *units->ranges))
      break;
    units->ranges[units->range_count++] =
        (struct range){start, end, units->count};
  }
  units->count++;
}

static void lines_find_units(struct units *units, Dwarf *dwarf)
{
  Dwarf_CU *cu = NULL;
  Dwarf_Half version;
  uint8_t type;
  Dwarf_Die die, sub;
  while (dwarf_get_units(dwarf, cu, &cu, &version, &type, &die, &sub) == 0)
    if (type == DW_UT_compile)
      lines_add_unit(units, &die, &die);
    else if (type == DW_UT_skeleton)
      lines_add_unit(units, &die, sub.addr ? &sub : &die);
  if (units->range_count)
    qsort(units->ranges, units->range_count, sizeof *units->ranges,
          lines_by_start);
}

/* The unit that contains an address; SIZE_MAX: none. */
static size_t lines_unit(const struct units *units, uint64_t address)
{
  size_t low = 0, high = units->range_count;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (units->ranges[mid].start <= address)
      low = mid + 1;
    else
      high = mid;
  }
  /* Ranges of different units overlap only where a linker has folded code. */
  for (int back = 0; back < 8 && low > 0; back++)
    if (address < units->ranges[--low].end)
      return units->ranges[low].unit;
  return SIZE_MAX;
}

static void lines_read_unit(
    Dwarf_Die *unit, struct wanted *wanted, size_t count, uint64_t *steps,
    void (*each)(void *, size_t, const struct ljp_symbol_frame *, unsigned),
    void *ctx)
{
  struct walk walk = {.wanted = wanted, .count = count, .steps = steps};
  if (dwarf_getsrcfiles(unit, &walk.files, &walk.file_count) != 0)
    walk.file_count = 0;
  lines_walk_tree(&walk, unit);
  lines_tell(&walk, unit, each, ctx);
  while (walk.made) {
    struct inlined *next = walk.made->next_made;
    free((char *)walk.made->name);
    free(walk.made);
    walk.made = next;
  }
}

void ljp_sym_dwarf(Dwarf *dwarf, const struct ljp_sym_request *request,
                   void (*each)(void *ctx, size_t index,
                                const struct ljp_symbol_frame *frames,
                                unsigned count),
                   void *ctx)
{
  struct units units = {0};
  struct wanted *wanted = calloc(request->count + 1, sizeof *wanted);
  size_t found = 0;
  uint64_t steps = 0;
  lines_find_units(&units, dwarf);
  for (size_t i = 0; wanted && i < request->count; i++) {
    size_t unit = lines_unit(&units, request->addresses[i]);
    if (unit != SIZE_MAX)
      wanted[found++] = (struct wanted){request->addresses[i], i, unit, NULL};
  }
  if (found)
    qsort(wanted, found, sizeof *wanted, lines_by_unit);
  for (size_t i = 0, n; i < found; i += n) {
    n = 1;
    while (i + n < found && wanted[i + n].unit == wanted[i].unit)
      n++;
    lines_read_unit(&units.dies[wanted[i].unit], wanted + i, n, &steps, each,
                    ctx);
  }
  free(wanted);
  free(units.ranges);
  free(units.dies);
}
