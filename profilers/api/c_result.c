/*
** Results of the C interface; see c_result.h.
*/
#include "profilers/api/c_result.h"

#include <errno.h>

#include "profilers/api/lmisclib.h"

int ljp_c_result(enum ljp_status status, const struct ljp_failure *why)
{
  if (status)
    errno = why->error;
  switch (status) {
  case LJP_OK:
    return PROFILE_SUCCESS;
  case LJP_ERR_RUN:
    return PROFILE_ERRRUN;
  case LJP_ERR_MEM:
    return PROFILE_ERRMEM;
  case LJP_ERR_IO:
    return PROFILE_ERRIO;
  default:
    return PROFILE_ERRUSE;
  }
}
