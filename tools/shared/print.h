/*
** Print: buffered output for views. Strings from untrusted input are escaped
** for a terminal, JSON or XML. The first failed write is remembered and later
** output is dropped; ljp_print_end() returns the error. One thread per output.
*/
#ifndef LJP_TOOLS_PRINT_H
#define LJP_TOOLS_PRINT_H

#include "parsers/stream/item.h"

struct ljp_print {
  int fd; /* -1: output goes to the sink, if there is one. */
  void (*sink)(void *ctx, const char *data, size_t len);
  void *ctx;
  int error;      /* errno of the first failed write. */
  uint64_t bytes; /* Written or dropped. */
  size_t len;
  char buf[1 << 16];
};

void ljp_print_begin(struct ljp_print *out, int fd);

/* Writes the rest of the buffer. Returns 0 or the errno of the first
** failure. */
int ljp_print_end(struct ljp_print *out);

void ljp_print_raw(struct ljp_print *out, const char *data, size_t len);
void ljp_print_str(struct ljp_print *out, const char *text);
void ljp_print_dec(struct ljp_print *out, uint64_t number);
__attribute__((format(printf, 2, 3))) void
ljp_print_format(struct ljp_print *out, const char *format, ...);

/* Text for people: bytes that are not printable UTF-8 become \xNN. */
void ljp_print_safe(struct ljp_print *out, struct ljp_str s);
void ljp_print_quoted(struct ljp_print *out, struct ljp_str s);

/* A JSON string in quotes. Bytes that are not UTF-8 become U+FFFD. */
void ljp_print_json(struct ljp_print *out, struct ljp_str s);
/* The same without quotes, for a string written in pieces. Pieces must be
** split at ASCII characters. */
void ljp_print_json_inside(struct ljp_print *out, struct ljp_str s);
/* XML text or attribute value. Characters not allowed in XML become U+FFFD. */
void ljp_print_xml(struct ljp_print *out, struct ljp_str s);
void ljp_print_hex(struct ljp_print *out, struct ljp_str s);

/* Whether ljp_print_json() shows the string without loss. */
bool ljp_is_utf8(struct ljp_str s);

static inline struct ljp_str ljp_str(const char *data, size_t len)
{
  return (struct ljp_str){data, (uint32_t)len};
}

#endif
