/*
** Preloaded: takes the library out of LD_PRELOAD again (src/base/preload.h).
** Ordinary code, for the library's constructor: no other thread exists yet.
*/
#ifndef LJP_PRELOADED_H
#define LJP_PRELOADED_H

#include <stdbool.h>

/* The request behind what it says of LD_PRELOAD. */
const char *ljp_preloaded_request(const char *request);

/* Leaves LD_PRELOAD as the program is to see it. argv: of main(); NULL: not
** known. False: this is not yet the program that `ljprof record` runs. May not
** return: the process begins anew without the library. */
bool ljp_preloaded_begin(char **argv);

#endif
