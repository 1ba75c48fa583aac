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
#include "tools/shared/text.h"

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

/* Which backslashes are doubled. */
enum print_back { BACK_AS_IS, BACK_IF_UNCLEAR, BACK_ALWAYS };

static bool print_is_hex(char c)
{
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Writes the backslashes at the start of s. They are doubled if what follows
** looks like one of our escapes, or becomes one. */
static void print_backslashes(struct ljp_print *out, struct ljp_str *s,
                              enum print_back back)
{
  uint32_t n = 0, rune = 0;
  while (n < s->len && s->data[n] == '\\')
    n++;
  s->data += n;
  s->len -= n;
  struct ljp_str rest = *s;
  bool unclear = rest.len > 2 && rest.data[0] == 'x' &&
                 print_is_hex(rest.data[1]) && print_is_hex(rest.data[2]);
  if (!unclear && rest.len) {
    ljp_text_next(&rest, &rune);
    unclear = rune == LJP_TEXT_BAD || ljp_text_is_hidden(rune);
  }
  if (back == BACK_ALWAYS || (back == BACK_IF_UNCLEAR && unclear))
    n *= 2;
  while (n--)
    ljp_print_raw(out, "\\", 1);
}

/* quote: one more character to escape; 0: none. */
static void print_escaped(struct ljp_print *out, struct ljp_str s, char quote,
                          enum print_back back)
{
  while (s.len) {
    uint32_t rune;
    if (*s.data == '\\') {
      print_backslashes(out, &s, back);
      continue;
    }
    struct ljp_str c = ljp_text_next(&s, &rune);
    if (quote && rune == (uint8_t)quote) {
      ljp_print_format(out, "\\%c", (char)rune);
    } else if (rune == LJP_TEXT_BAD || ljp_text_is_hidden(rune)) {
      for (uint32_t i = 0; i < c.len; i++)
        ljp_print_format(out, "\\x%02x", (uint8_t)c.data[i]);
    } else {
      ljp_print_raw(out, c.data, c.len);
    }
  }
}

void ljp_print_safe(struct ljp_print *out, struct ljp_str s)
{
  print_escaped(out, s, 0, BACK_IF_UNCLEAR);
}

void ljp_print_source(struct ljp_print *out, struct ljp_str s)
{
  print_escaped(out, s, 0, BACK_AS_IS);
}

void ljp_print_quoted(struct ljp_print *out, struct ljp_str s)
{
  ljp_print_raw(out, "\"", 1);
  print_escaped(out, s, '"', BACK_ALWAYS);
  ljp_print_raw(out, "\"", 1);
}

/* before: what precedes an escape, so that readers of the JSON see its text. */
static void print_json_escape(struct ljp_print *out, uint32_t rune,
                              const char *before)
{
  if (rune < 0x10000)
    ljp_print_format(out, "%s\\u%04x", before, rune);
  else
    ljp_print_format(out, "%s\\u%04x%s\\u%04x", before,
                     0xd800 + ((rune - 0x10000) >> 10), before,
                     0xdc00 + ((rune - 0x10000) & 0x3ff));
}

static void print_json_text(struct ljp_print *out, struct ljp_str s,
                            bool visible)
{
  while (s.len) {
    uint32_t rune;
    struct ljp_str c = ljp_text_next(&s, &rune);
    if (rune == LJP_TEXT_BAD)
      ljp_print_str(out, "\\ufffd");
    else if (ljp_text_is_hidden(rune))
      print_json_escape(out, rune,
                        visible && rune != '\t' && rune != '\n' ? "\\" : "");
    else if (rune == '"' || rune == '\\')
      ljp_print_format(out, "\\%c", (char)rune);
    else if (rune == '<' && visible)
      print_json_escape(out, rune, "");
    else
      ljp_print_raw(out, c.data, c.len);
  }
}

void ljp_print_json(struct ljp_print *out, struct ljp_str s)
{
  ljp_print_raw(out, "\"", 1);
  print_json_text(out, s, false);
  ljp_print_raw(out, "\"", 1);
}

void ljp_print_json_page(struct ljp_print *out, struct ljp_str s)
{
  ljp_print_raw(out, "\"", 1);
  print_json_text(out, s, true);
  ljp_print_raw(out, "\"", 1);
}

void ljp_print_xml(struct ljp_print *out, struct ljp_str s)
{
  while (s.len) {
    uint32_t rune;
    struct ljp_str c = ljp_text_next(&s, &rune);
    if (rune == LJP_TEXT_BAD || ljp_text_is_hidden(rune) || rune == 0xfffe ||
        rune == 0xffff)
      ljp_print_str(out, "\xef\xbf\xbd");
    else if (rune < 0x80 && strchr("<>&\"'", (int)rune))
      ljp_print_format(out, "&#%u;", rune);
    else
      ljp_print_raw(out, c.data, c.len);
  }
}

void ljp_print_plain(struct ljp_print *out, struct ljp_str s, char avoid)
{
  while (s.len) {
    uint32_t rune;
    struct ljp_str c = ljp_text_next(&s, &rune);
    if (avoid && rune == (uint8_t)avoid)
      ljp_print_str(out, ":");
    else if (rune == LJP_TEXT_BAD)
      ljp_print_str(out, "\xef\xbf\xbd");
    else if (ljp_text_is_hidden(rune))
      ljp_print_str(out, " ");
    else
      ljp_print_raw(out, c.data, c.len);
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
