/*
** Failures of calls that users make: a text for people and an errno number.
*/
#ifndef LJP_FAILURE_H
#define LJP_FAILURE_H

#include "src/base/status.h"

struct ljp_failure {
  int error; /* errno */
  char text[512];
};

/* Fills *why, unless it is NULL, and returns status. */
enum ljp_status ljp_fail(struct ljp_failure *why, enum ljp_status status,
                         int error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The errno number for a status that came without one. */
/* What is missing if a compressor cannot be made (LJP_ERR_NOTSUP). */
#define LJP_NO_ZSTD                                                            \
  "there is no libzstd.so.1 to compress with: install it (Debian: libzstd1), " \
  "or leave out compress"

int ljp_status_errno(enum ljp_status status);

#endif
