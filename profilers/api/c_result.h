/*
** Results of the C interface: a PROFILE_* code of lmisclib.h, and errno.
*/
#ifndef LJP_C_RESULT_H
#define LJP_C_RESULT_H

#include "profilers/session/failure.h"

/* The code for a status. On failure sets errno to that of *why. */
int ljp_c_result(enum ljp_status status, const struct ljp_failure *why);

#endif
