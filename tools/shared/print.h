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

/* Text for people: bytes that are not UTF-8, and the characters of
** ljp_text_is_hidden(), become \xNN. A backslash is doubled only where it would
** be taken for the start of such an escape. */
void ljp_print_safe(struct ljp_print *out, struct ljp_str s);
/* The same for source code: backslashes stay as they are. */
void ljp_print_source(struct ljp_print *out, struct ljp_str s);
void ljp_print_quoted(struct ljp_print *out, struct ljp_str s);

/* A JSON string in quotes. Hidden characters become \uNNNN; bytes that are not
** UTF-8 become U+FFFD. */
void ljp_print_json(struct ljp_print *out, struct ljp_str s);
/* The same for a string that a page shows: the escapes of hidden characters
** stay visible there, and the JSON contains no "<". */
void ljp_print_json_page(struct ljp_print *out, struct ljp_str s);
/* XML text or attribute value. Hidden characters, and what XML does not allow,
** become U+FFFD. */
void ljp_print_xml(struct ljp_print *out, struct ljp_str s);
/* Text for other programs, without escapes: hidden characters become spaces,
** bytes that are not UTF-8 U+FFFD, and `avoid` (0: none) a colon. */
void ljp_print_plain(struct ljp_print *out, struct ljp_str s, char avoid);
void ljp_print_hex(struct ljp_print *out, struct ljp_str s);

static inline struct ljp_str ljp_str(const char *data, size_t len)
{
  return (struct ljp_str){data, (uint32_t)len};
}

#endif
