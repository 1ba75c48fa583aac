/*
** What must hold for any input of a fuzz target.
*/
#ifndef LJP_TEST_MUST_H
#define LJP_TEST_MUST_H

#include <stdio.h>
#include <stdlib.h>

#define MUST(condition)                                                        \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "failed: %s\n", #condition);                             \
      abort();                                                                 \
    }                                                                          \
  } while (0)

#endif
