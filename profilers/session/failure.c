/*
** Failures of calls that users make; see failure.h.
*/
#include "profilers/session/failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum ljp_status ljp_fail(struct ljp_failure *why, enum ljp_status status,
                         int error, const char *format, ...)
{
  va_list args;
  if (!why)
    return status;
  va_start(args, format);
  vsnprintf(why->text, sizeof why->text, format, args);
  va_end(args);
  why->error = error;
  return status;
}

int ljp_status_errno(enum ljp_status status)
{
  switch (status) {
  case LJP_ERR_MEM:
    return ENOMEM;
  case LJP_ERR_NOTSUP:
    return ENOTSUP;
  case LJP_ERR_RUN:
    return EBUSY;
  case LJP_ERR_IO:
    return EIO;
  default:
    return EINVAL;
  }
}
