/*
** The commands that only a full ljprof has, in a build without the analyzer
** (LJPROF_ANALYZER=OFF): they say so.
*/
#include "tools/shared/command.h"

#define ABSENT_LIST(_)                                                         \
  _(dump_stacks)                                                               \
  _(report)                                                                    \
  _(advise)                                                                    \
  _(annotate)                                                                  \
  _(top)                                                                       \
  _(heap)                                                                      \
  _(embed)                                                                     \
  _(merge) _(flame) _(diff) _(expect) _(export) _(push) _(gather) _(exporter)

#define ABSENT_COMMAND(name)                                                   \
  int ljp_command_##name(int argc, char **argv)                                \
  {                                                                            \
    (void)argc;                                                                \
    (void)argv;                                                                \
    ljp_command_error(#name, "this ljprof was built without the analyzer; "    \
                             "copy the file to a machine with a full ljprof"); \
    return LJP_EXIT_FAILED;                                                    \
  }
ABSENT_LIST(ABSENT_COMMAND)
