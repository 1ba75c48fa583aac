/*
** Lua options that every session has: where its stream goes and how it is
** written. For tables of struct ljp_option whose target begins with a struct
** ljp_output.
*/
#ifndef LJP_OUTPUT_OPTIONS_H
#define LJP_OUTPUT_OPTIONS_H

#include "profilers/api/options.h"

#define LJP_OUTPUT_OPTIONS                                                     \
  {"path", ljp_read_path}, {"fork", ljp_read_fork}, {"flush", ljp_read_flush}, \
      {"compress", ljp_read_compress}, {"sync", ljp_read_sync},                \
      {"rotate_bytes", ljp_read_rotate_bytes},                                 \
      {"rotate_seconds", ljp_read_rotate_seconds},                             \
      {"duration", ljp_read_duration}, {"service", ljp_read_service},          \
      {"ring", ljp_read_ring},                                                 \
  {                                                                            \
    "keep", ljp_read_keep                                                      \
  }

ljp_option_reader ljp_read_path, ljp_read_fork, ljp_read_flush,
    ljp_read_compress, ljp_read_sync, ljp_read_rotate_bytes,
    ljp_read_rotate_seconds, ljp_read_duration, ljp_read_keep, ljp_read_service,
    ljp_read_ring;

#endif
