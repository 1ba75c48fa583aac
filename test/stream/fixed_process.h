/*
** PROCESS with the same fields on each machine, for ljp_writer_options. For the
** golden streams and for tests that compare bytes.
*/
#ifndef LJP_TEST_FIXED_PROCESS_H
#define LJP_TEST_FIXED_PROCESS_H

#include "src/writer/builder.h"

static inline void fixed_process(struct ljp_body *body)
{
  static const char executable[] = "/usr/bin/example";
  static const char argv[] = "example\0--flag";
  ljp_body_u(body, 4242);
  ljp_body_u(body, 1);
  ljp_body_u(body, 1000000007);
  ljp_body_u(body, UINT64_C(1700000000000000000));
  ljp_body_str(body, executable, sizeof executable - 1, 4096);
  ljp_body_str(body, argv, sizeof argv, 4096);
}

#endif
