/* For programs that shell tests run: a CHECK that fails ends the program. */
#ifndef LJP_TEST_CHECK_H
#define LJP_TEST_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(what)                                                            \
  do {                                                                         \
    if (!(what)) {                                                             \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);               \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

#endif
