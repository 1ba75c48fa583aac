/*
** The script in a command line; see related.h. A file of its own, so that it does
** not need profiles.
*/
#include <string.h>

#include "parsers/base/str.h"
#include "tools/shared/related.h"
#include "tools/shared/print.h"

struct ljp_str ljp_related_script_of(struct ljp_str line)
{
  bool program = true;
  while (line.len) {
    const char *end = memchr(line.data, 0, line.len);
    uint32_t n = end ? (uint32_t)(end - line.data) : line.len;
    if (!program && n > 4 && memcmp(line.data + n - 4, ".lua", 4) == 0)
      return ljp_base_name(ljp_str(line.data, n));
    program = false;
    n += end != NULL;
    line = ljp_str(line.data + n, line.len - n);
  }
  return ljp_str("", 0);
}
