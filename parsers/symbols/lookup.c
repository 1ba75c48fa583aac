/*
** Answers the addresses of one module from its files: names from symbol
** tables, inlined functions and lines from DWARF. The outermost function has
** its name from the symbol table if possible: so a profile shows the same
** functions with and without debug information. Runs in the child (lookup.h).
*/
#include <stdlib.h>
#include <string.h>

#include "parsers/symbols/demangle.h"
#include "parsers/symbols/dwarf_lines.h"
#include "parsers/symbols/elf_names.h"
#include "parsers/symbols/files.h"

struct lookup {
  const struct ljp_sym_request *request;
  const struct ljp_sym_sink *sink;
  struct ljp_sym_names names;
  bool *answered;
};

static void lookup_answer(void *ctx, size_t index,
                          const struct ljp_symbol_frame *frames, unsigned count)
{
  struct lookup *lookup = ctx;
  struct ljp_symbol_frame named[LJP_SYM_FRAMES_MAX];
  char pretty[LJP_SYM_NAME_MAX];
  const char *name =
      ljp_sym_names_find(&lookup->names, lookup->request->addresses[index]);
  memcpy(named, frames, count * sizeof *named);
  if (name) {
    ljp_sym_demangle(name, pretty);
    size_t len = strlen(pretty);
    if (strstr(name, LJP_SYMBOL_PART ".") &&
        len + sizeof LJP_SYMBOL_PART <= sizeof pretty)
      memcpy(pretty + len, LJP_SYMBOL_PART, sizeof LJP_SYMBOL_PART);
    named[count - 1].function = pretty;
  }
  if (!*named[count - 1].function) /* Padding between functions. */
    return;
  lookup->answered[index] = true;
  lookup->sink->answer(lookup->sink->ctx, index, named, count);
}

/* Tells all functions, each address once, with its best name. */
static void lookup_functions(const struct ljp_sym_names *names,
                             const struct ljp_sym_sink *sink)
{
  char pretty[LJP_SYM_NAME_MAX];
  for (size_t i = 0; i < names->count; i++)
    if (i + 1 == names->count ||
        names->list[i].start != names->list[i + 1].start) {
      ljp_sym_demangle(names->list[i].name, pretty);
      sink->function(sink->ctx, names->list[i].start, pretty);
    }
}

void ljp_sym_lookup(const struct ljp_symbols_options *options,
                    const struct ljp_sym_request *request,
                    enum ljp_sym_level level, const struct ljp_sym_sink *sink)
{
  struct ljp_sym_files files;
  struct lookup lookup = {.request = request, .sink = sink};
  if (level == LJP_SYM_NOTHING)
    return;
  ljp_sym_files_open(&files, options, request, sink);
  lookup.answered = calloc(request->count + 1, 1);
  bool ok = lookup.answered != NULL;
  if (ok && files.own.elf)
    ok = ljp_sym_names_add(&lookup.names, files.own.elf);
  if (ok && files.debug.elf && files.debug.elf != files.own.elf)
    ok = ljp_sym_names_add(&lookup.names, files.debug.elf);
  ok = ok && ljp_sym_names_sort(&lookup.names);
  if (ok && request->functions)
    lookup_functions(&lookup.names, sink);
  if (ok && files.own.elf)
    ok = ljp_sym_names_add_plt(&lookup.names, files.own.elf);
  if (ok && files.debug.elf && level == LJP_SYM_FULL && !options->no_dwarf) {
    Dwarf *dwarf = dwarf_begin_elf(files.debug.elf, DWARF_C_READ, NULL);
    if (dwarf) {
      ljp_sym_dwarf(dwarf, request, lookup_answer, &lookup);
      dwarf_end(dwarf);
    }
  }
  static const struct ljp_symbol_frame empty = {"", "", 0};
  for (size_t i = 0; ok && i < request->count; i++)
    if (!lookup.answered[i] &&
        ljp_sym_names_find(&lookup.names, request->addresses[i]))
      lookup_answer(&lookup, i, &empty, 1);
  ljp_sym_names_free(&lookup.names);
  free(lookup.answered);
  ljp_sym_files_close(&files);
}
