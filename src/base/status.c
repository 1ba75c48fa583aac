/*
** Texts of the status codes. May be called from anywhere.
*/
#include "src/base/status.h"

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
