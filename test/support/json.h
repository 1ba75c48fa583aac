/*
** Checks that a text is one JSON value (RFC 8259) in UTF-8, for tests of code
** that writes JSON. It does not recurse; values nest up to 64 deep.
*/
#ifndef LJP_TEST_JSON_H
#define LJP_TEST_JSON_H

#include <stdbool.h>
#include <stddef.h>

bool json_valid(const char *text, size_t len);

/* Whether each line is one JSON object; the last ends with a newline. */
bool json_lines_valid(const char *text, size_t len);

#endif
