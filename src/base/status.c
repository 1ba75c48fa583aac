/*
** Texts of the status codes. May be called from anywhere.
*/
#include "src/base/status.h"

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
