/* See json.h. */
#include "test/support/json.h"

#include <stdint.h>
#include <string.h>

struct json {
  const uint8_t *p, *end;
};

static void json_blank(struct json *j)
{
  while (j->p < j->end && strchr(" \t\r\n", *j->p) && *j->p)
    j->p++;
}

static bool json_take(struct json *j, const char *word)
{
  size_t n = strlen(word);
  if ((size_t)(j->end - j->p) < n || memcmp(j->p, word, n) != 0)
    return false;
  j->p += n;
  return true;
}

static size_t json_digits(struct json *j)
{
  size_t n = 0;
  for (; j->p < j->end && *j->p >= '0' && *j->p <= '9'; j->p++)
    n++;
  return n;
}

static bool json_number(struct json *j)
{
  json_take(j, "-");
  if (!json_take(j, "0") && !json_digits(j))
    return false;
  if (json_take(j, ".") && !json_digits(j))
    return false;
  if (json_take(j, "e") || json_take(j, "E")) {
    if (!json_take(j, "+"))
      json_take(j, "-");
    return json_digits(j) > 0;
  }
  return true;
}

static bool json_character(struct json *j)
{
  unsigned lead = *j->p++;
  unsigned more = lead < 0x80   ? 0
                  : lead < 0xc2 ? 9
                  : lead < 0xe0 ? 1
                  : lead < 0xf0 ? 2
                  : lead < 0xf5 ? 3
                                : 9;
  if (more > (size_t)(j->end - j->p))
    return false;
  if ((lead == 0xe0 && *j->p < 0xa0) || (lead == 0xed && *j->p > 0x9f) ||
      (lead == 0xf0 && *j->p < 0x90) || (lead == 0xf4 && *j->p > 0x8f))
    return false;
  for (; more; more--)
    if ((*j->p++ & 0xc0) != 0x80)
      return false;
  return true;
}

static bool json_string(struct json *j)
{
  if (!json_take(j, "\""))
    return false;
  while (j->p < j->end) {
    if (*j->p == '"') {
      j->p++;
      return true;
    }
    if (*j->p < 0x20)
      return false;
    if (*j->p != '\\') {
      if (!json_character(j))
        return false;
      continue;
    }
    j->p++;
    if (j->p >= j->end || !*j->p || !strchr("\"\\/bfnrtu", *j->p))
      return false;
    if (*j->p++ != 'u')
      continue;
    for (int i = 0; i < 4; i++, j->p++)
      if (j->p >= j->end || !*j->p || !strchr("0123456789abcdefABCDEF", *j->p))
        return false;
  }
  return false;
}

bool json_valid(const char *text, size_t len)
{
  struct json j = {(const uint8_t *)text, (const uint8_t *)text + len};
  char open[64];
  unsigned depth = 0;
  for (;;) {
    /* A value begins here. */
    json_blank(&j);
    if (depth && open[depth - 1] == '}') {
      if (!json_string(&j))
        return false;
      json_blank(&j);
      if (!json_take(&j, ":"))
        return false;
      json_blank(&j);
    }
    if (json_take(&j, "{") || json_take(&j, "[")) {
      if (depth == sizeof open)
        return false;
      open[depth] = j.p[-1] == '{' ? '}' : ']';
      json_blank(&j);
      if (j.p >= j.end || *j.p != open[depth]) {
        depth++;
        continue;
      }
      j.p++;
    } else if (!json_take(&j, "true") && !json_take(&j, "false") &&
               !json_take(&j, "null") &&
               !(j.p < j.end &&
                 (*j.p == '"' ? json_string(&j) : json_number(&j)))) {
      return false;
    }
    /* The value ends here, and perhaps those around it. */
    for (;;) {
      json_blank(&j);
      if (!depth)
        return j.p == j.end;
      if (json_take(&j, ","))
        break;
      if (j.p >= j.end || *j.p != open[depth - 1])
        return false;
      j.p++;
      depth--;
    }
  }
}

bool json_lines_valid(const char *text, size_t len)
{
  while (len) {
    const char *end = memchr(text, '\n', len);
    if (!end || *text != '{' || !json_valid(text, (size_t)(end - text)))
      return false;
    len -= (size_t)(end + 1 - text);
    text = end + 1;
  }
  return true;
}
