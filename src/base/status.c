/*
** Texts of the status codes. May be called from anywhere.
*/
#include "src/base/status.h"

#include <errno.h>
#include <string.h>

const char *ljp_status_text(enum ljp_status status)
{
  switch (status) {
#define LJP_STATUS_TEXT(name, number, text)                                    \
  case LJP_##name:                                                             \
    return text;
    LJP_STATUS_LIST(LJP_STATUS_TEXT)
#undef LJP_STATUS_TEXT
  }
  return "unknown status";
}

const char *ljp_errno_text(int error)
{
#ifdef __GLIBC__
  return strerrordesc_np(error);
#else /* musl translates if the program sets a locale and MUSL_LOCPATH is set */
  const char *text = strerror(error);
  return strcmp(text, strerror(-1)) == 0 ? NULL : text;
#endif
}

const char *ljp_errno_advice(int error)
{
  switch (error) {
  case ENOMEM:
    return "; free memory, or raise its limit (ulimit -v)";
  case EMFILE:
    return "; raise the limit on open files (ulimit -n)";
  case EFBIG:
    return "; raise the limit on the size of files (ulimit -f)";
  case ENOSPC:
  case EDQUOT:
    return "; free space there, or write elsewhere";
  case ECANCELED:
    return "; give the snapshot a path of its own";
  default:
    return "";
  }
}
