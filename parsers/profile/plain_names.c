/*
** See plain_names.h.
*/
#include "parsers/profile/plain_names.h"

#include <stddef.h>
#include <string.h>

static const struct {
  const char *own, *plain;
} plain_names[] = {
    {"coroutine.wrap_aux", "coroutine.wrap (resume)"},
    {"io_file_iter", "io.lines (iterator)"},
    {"ipairs_aux", "ipairs (iterator)"},
    {"string.gmatch_aux", "string.gmatch (iterator)"},
    {"lj_cf_package_loader_c", "package.loaders (C)"},
    {"lj_cf_package_loader_croot", "package.loaders (C, all in one)"},
    {"lj_cf_package_loader_lua", "package.loaders (Lua)"},
    {"lj_cf_package_loader_preload", "package.loaders (preload)"},
    {"lj_cf_package_loadlib", "package.loadlib"},
    {"lj_cf_package_module", "module"},
    {"lj_cf_package_require", "require"},
    {"lj_cf_package_searchpath", "package.searchpath"},
    {"lj_cf_package_seeall", "package.seeall"},
};

const char *ljp_plain_name(struct ljp_str name)
{
  for (size_t i = 0; i < sizeof plain_names / sizeof *plain_names; i++)
    if (strlen(plain_names[i].own) == name.len &&
        memcmp(plain_names[i].own, name.data, name.len) == 0)
      return plain_names[i].plain;
  return NULL;
}
