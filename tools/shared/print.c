/*
** Buffers output and escapes text for terminals, JSON and XML.
*/
#include "tools/shared/print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/assert.h"

void ljp_print_begin(struct ljp_print *out, int fd)
{
  out->fd = fd;
  out->sink = NULL;
  out->ctx = NULL;
  out->error = 0;
  out->bytes = 0;
  out->len = 0;
}

static void print_flush(struct ljp_print *out)
{
  size_t done = 0;
  ljp_assert(out->len <= sizeof out->buf);
  while (done < out->len && out->fd >= 0 && !out->error) {
    ssize_t n = write(out->fd, out->buf + done, out->len - done);
    if (n >= 0)
      done += (size_t)n;
    else if (errno != EINTR)
      out->error = errno;
  }
  if (out->sink)
    out->sink(out->ctx, out->buf, out->len);
  out->bytes += out->len;
  out->len = 0;
}

int ljp_print_end(struct ljp_print *out)
{
  print_flush(out);
  return out->error;
}

void ljp_print_raw(struct ljp_print *out, const char *data, size_t len)
{
  while (len) {
    size_t room = sizeof out->buf - out->len;
    size_t n = len < room ? len : room;
    memcpy(out->buf + out->len, data, n);
    out->len += n;
    data += n;
    len -= n;
    if (out->len == sizeof out->buf)
      print_flush(out);
  }
}

void ljp_print_str(struct ljp_print *out, const char *text)
{
  ljp_print_raw(out, text, strlen(text));
}

void ljp_print_dec(struct ljp_print *out, uint64_t number)
{
  char digits[20];
  size_t at = sizeof digits;
  do
    digits[--at] = (char)('0' + number % 10);
  while (number /= 10);
  ljp_print_raw(out, digits + at, sizeof digits - at);
}

void ljp_print_format(struct ljp_print *out, const char *format, ...)
{
  char text[512]; /* Formats are short and contain no input strings. */
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  ljp_assert(n >= 0 && (size_t)n < sizeof text);
  if (n > 0)
    ljp_print_raw(out, text,
                  (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

/* Length of the UTF-8 sequence at p (RFC 3629); 0: not valid. */
static size_t print_utf8_length(const uint8_t *p, const uint8_t *end,
                                uint32_t *rune)
{
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  size_t n = *p < 0x80 ? 1 : *p < 0xc0 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
  if (*p >= 0xf8 || n == 0 || (size_t)(end - p) < n)
    return 0;
  *rune = n == 1 ? *p : *p & (0x7fu >> n);
  for (size_t i = 1; i < n; i++) {
    if ((p[i] & 0xc0) != 0x80)
      return 0;
    *rune = *rune << 6 | (p[i] & 0x3f);
  }
  if (*rune < least[n] || *rune > 0x10ffff ||
      (*rune >= 0xd800 && *rune <= 0xdfff))
    return 0;
  return n;
}

bool ljp_is_utf8(struct ljp_str s)
{
  const uint8_t *p = (const uint8_t *)s.data, *end = s.len ? p + s.len : p;
  while (p < end) {
    uint32_t rune;
    size_t n = print_utf8_length(p, end, &rune);
    if (!n)
      return false;
    p += n;
  }
  return true;
}

/* quote: one more character to escape; 0: none. */
static void print_escaped(struct ljp_print *out, struct ljp_str s, char quote)
{
  const uint8_t *p = (const uint8_t *)s.data, *end = s.len ? p + s.len : p;
  while (p < end) {
    uint32_t rune;
    size_t n = print_utf8_length(p, end, &rune);
    /* Control characters (C0, DEL, C1) and bidirectional controls could move
    ** the cursor or disguise the text. */
    if (n && rune >= 0x20 && rune != 0x7f && rune != '\\' &&
        rune != (uint8_t)quote && !(rune >= 0x80 && rune < 0xa0) &&
        !(rune >= 0x202a && rune <= 0x202e) &&
        !(rune >= 0x2066 && rune <= 0x2069)) {
      ljp_print_raw(out, (const char *)p, n);
      p += n;
      continue;
    }
    if (!n)
      n = 1;
    for (; n; n--, p++)
      ljp_print_format(
          out, *p == '\\' || (*p && *p == (uint8_t)quote) ? "\\%c" : "\\x%02x",
          *p);
  }
}

void ljp_print_safe(struct ljp_print *out, struct ljp_str s)
{
  print_escaped(out, s, 0);
}

void ljp_print_quoted(struct ljp_print *out, struct ljp_str s)
{
  ljp_print_raw(out, "\"", 1);
  print_escaped(out, s, '"');
  ljp_print_raw(out, "\"", 1);
}

void ljp_print_json_inside(struct ljp_print *out, struct ljp_str s)
{
  const uint8_t *p = (const uint8_t *)s.data, *end = s.len ? p + s.len : p;
  while (p < end) {
    uint32_t rune;
    size_t n = print_utf8_length(p, end, &rune);
    if (!n) {
      ljp_print_str(out, "\\ufffd");
      n = 1;
    } else if (rune < 0x20 || rune == 0x7f) {
      ljp_print_format(out, "\\u%04x", rune);
    } else if (rune == '"' || rune == '\\') {
      ljp_print_format(out, "\\%c", (char)rune);
    } else {
      ljp_print_raw(out, (const char *)p, n);
    }
    p += n;
  }
}

void ljp_print_json(struct ljp_print *out, struct ljp_str s)
{
  ljp_print_raw(out, "\"", 1);
  ljp_print_json_inside(out, s);
  ljp_print_raw(out, "\"", 1);
}

void ljp_print_xml(struct ljp_print *out, struct ljp_str s)
{
  const uint8_t *p = (const uint8_t *)s.data, *end = s.len ? p + s.len : p;
  while (p < end) {
    uint32_t rune;
    size_t n = print_utf8_length(p, end, &rune);
    if (!n || rune < 0x20 || (rune >= 0x7f && rune < 0xa0) || rune == 0xfffe ||
        rune == 0xffff) {
      ljp_print_str(out, "\xef\xbf\xbd"); /* XML does not allow it. */
      n = n ? n : 1;
    } else if (strchr("<>&\"'", (int)rune) && rune < 0x80) {
      ljp_print_format(out, "&#%u;", rune);
    } else {
      ljp_print_raw(out, (const char *)p, n);
    }
    p += n;
  }
}

void ljp_print_hex(struct ljp_print *out, struct ljp_str s)
{
  static const char digits[] = "0123456789abcdef";
  for (uint32_t i = 0; i < s.len; i++) {
    uint8_t byte = (uint8_t)s.data[i];
    const char pair[2] = {digits[byte >> 4], digits[byte & 15]};
    ljp_print_raw(out, pair, 2);
  }
}
