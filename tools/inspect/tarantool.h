/*
** ljprof dump and check for files of Tarantool's profilers.
*/
#ifndef LJP_TOOLS_INSPECT_TARANTOOL_H
#define LJP_TOOLS_INSPECT_TARANTOOL_H

#include "parsers/stream/input.h"
#include "tools/shared/print.h"

/* Opens a file and reads its first bytes, which stay to be read. 0, or the exit
** code after the error was reported; *tarantool: what wrote it. */
int ljp_inspect_open(const char *command, const char *file,
                     struct ljp_input *input, bool *tarantool);

/* Take the input over, and return the exit code. */
int ljp_dump_tarantool(const char *file, const struct ljp_input *input,
                       bool json);
int ljp_check_tarantool(const char *file, const struct ljp_input *input,
                        bool json);

#endif
