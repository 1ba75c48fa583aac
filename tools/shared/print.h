/*
** Output of the views: buffered, with strings from untrusted input made safe
** for a terminal or for JSON. A write that fails is remembered, the rest of
** the output dropped; ljp_print_end() tells. One thread an output.
*/
#ifndef LJP_TOOLS_PRINT_H
#define LJP_TOOLS_PRINT_H

#include "parsers/stream/item.h"

struct ljp_print {
  int fd; /* -1: to the sink, if there is one. */
  void (*sink)(void *ctx, const char *data, size_t len);
  void *ctx;
  int error;      /* errno of the first failed write. */
  uint64_t bytes; /* Written or dropped. */
  size_t len;
  char buf[1 << 16];
};

void ljp_print_begin(struct ljp_print *out, int fd);

/* Writes what is left. 0, or the errno of the first failure. */
int ljp_print_end(struct ljp_print *out);

void ljp_print_raw(struct ljp_print *out, const char *data, size_t len);
void ljp_print_str(struct ljp_print *out, const char *text);
void ljp_print_dec(struct ljp_print *out, uint64_t number);
__attribute__((format(printf, 2, 3))) void
ljp_print_format(struct ljp_print *out, const char *format, ...);

/* Bytes as text for people: what is not printable UTF-8 as \xNN. */
void ljp_print_safe(struct ljp_print *out, struct ljp_str s);
void ljp_print_quoted(struct ljp_print *out, struct ljp_str s);

/* A JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. */
void ljp_print_json(struct ljp_print *out, struct ljp_str s);
/* The same without quotes, for a string that is written in pieces; they are cut
** at ASCII characters. */
void ljp_print_json_inside(struct ljp_print *out, struct ljp_str s);
/* Text of XML or an attribute's value; what it cannot hold becomes U+FFFD. */
void ljp_print_xml(struct ljp_print *out, struct ljp_str s);
void ljp_print_hex(struct ljp_print *out, struct ljp_str s);

/* Whether ljp_print_json() shows all of it. */
bool ljp_is_utf8(struct ljp_str s);

static inline struct ljp_str ljp_str(const char *data, size_t len)
{
  return (struct ljp_str){data, (uint32_t)len};
}

#endif
