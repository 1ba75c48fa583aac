/*
** Byte strings with a length: any bytes, not terminated, memory borrowed.
** Any thread.
*/
#ifndef LJP_PARSERS_STR_H
#define LJP_PARSERS_STR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct ljp_str {
  const char *data;
  uint32_t len;
};

static inline bool ljp_str_same(struct ljp_str a, struct ljp_str b)
{
  return a.len == b.len && (!a.len || memcmp(a.data, b.data, a.len) == 0);
}

/* The last component of a path; the whole path if it ends with a slash. */
static inline struct ljp_str ljp_base_name(struct ljp_str path)
{
  const char *slash = path.len ? memrchr(path.data, '/', path.len) : NULL;
  if (!slash || slash + 1 == path.data + path.len)
    return path;
  uint32_t skip = (uint32_t)(slash + 1 - path.data);
  return (struct ljp_str){slash + 1, path.len - skip};
}

#endif
