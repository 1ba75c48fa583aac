/*
** Text: strings from untrusted input, read character by character. What comes
** from a file may be any bytes; outputs ask here which characters they must not
** pass to a terminal or a browser. Any thread.
*/
#ifndef LJP_TOOLS_TEXT_H
#define LJP_TOOLS_TEXT_H

#include <stdbool.h>

#include "parsers/stream/item.h"

/* Takes the first character from *s, which is not empty. Returns its bytes;
** if they are not UTF-8 (RFC 3629), one byte, and *rune is LJP_TEXT_BAD. */
struct ljp_str ljp_text_next(struct ljp_str *s, uint32_t *rune);
#define LJP_TEXT_BAD UINT32_MAX

/* Whether a character commands a terminal (C0, DEL, C1), ends a line (U+2028,
** U+2029), changes the order of its neighbours, or shows nothing at all. */
bool ljp_text_is_hidden(uint32_t rune);

bool ljp_text_is_utf8(struct ljp_str s);

#endif
