/*
** See labels.h.
*/
#include "parsers/stream/labels.h"

#include <string.h>

/* Takes text up to a NUL; false: there is none. */
static bool labels_text(struct ljp_str *set, struct ljp_str *text)
{
  const char *end = set->len ? memchr(set->data, '\0', set->len) : NULL;
  if (!end)
    return false;
  *text = (struct ljp_str){set->data, (uint32_t)(end - set->data)};
  set->len -= text->len + 1;
  set->data = end + 1;
  return true;
}

bool ljp_labels_next(struct ljp_str *set, struct ljp_str *key,
                     struct ljp_str *value)
{
  return labels_text(set, key) && labels_text(set, value);
}

bool ljp_labels_are_valid(struct ljp_str set)
{
  struct ljp_str key, value;
  const char *last = NULL;
  while (set.len) {
    if (!ljp_labels_next(&set, &key, &value) || !key.len)
      return false;
    if (last && strcmp(last, key.data) >= 0) /* Both end with a NUL. */
      return false;
    last = key.data;
  }
  return true;
}
