/*
** ljprof advise: reads a profile and says what is worth changing.
*/
#include <unistd.h>

#include "tools/advise/advise.h"
#include "tools/shared/command.h"
#include "tools/shared/damage.h"
#include "tools/shared/labels.h"
#include "tools/shared/progress.h"

static const char help[] =
    "Usage: ljprof advise [OPTION]... FILE\n"
    "Says what is worth changing in a program: the place, the evidence, an "
    "upper bound\n"
    "of the gain with its sampling error, and what to write instead.\n"
    "\n"
    "  --json             write JSON\n"
    "  --sarif            write SARIF 2.1.0, for editors and CI\n"
    "  --thread T         only this thread: its name or id\n"
    "  --label KEY=VALUE  only what has this label; several: all of them; "
    "KEY=: without KEY\n"
    "  --no-symbols       do not look up names of machine code (finds less)\n"
    "  --help             show this help\n"
    "\n"
    "It judges CPU samples (without any, samples of elapsed time) and memory "
    "events.\n"
    "The guide doc/guide/advice.md (in packages below /usr/share/doc/ljprof)\n"
    "explains each kind of finding with an example.\n"
    "\n"
    "Exit code: 0 success, with or without findings; 1 failure, or nothing in "
    "the file\n"
    "to judge; 2 wrong usage.\n";

static int command_judge(const struct ljp_profile *p, const char *file,
                         bool json, bool sarif)
{
  static struct ljp_print out;
  struct advise_facts facts;
  struct advise_findings findings;
  int code = LJP_EXIT_OK;
  if (!p->totals.samples && !p->totals.wall_samples && !p->has_memory) {
    ljp_command_error("advise",
                      "%s: nothing to judge: no samples and no "
                      "memory events in the file%s",
                      file, ljp_damage_hint(p));
    return LJP_EXIT_FAILED;
  }
  if (!ljp_advise_collect(p, &facts)) {
    ljp_command_error("advise", "out of memory");
    return LJP_EXIT_FAILED;
  }
  if (ljp_advise_judge(&facts, &findings)) {
    struct advise_output o = {&facts, &findings, file, &out};
    ljp_print_begin(&out, STDOUT_FILENO);
    if (sarif)
      ljp_advise_sarif(&o);
    else if (json)
      ljp_advise_json(&o);
    else
      ljp_advise_text(&o);
    code = ljp_command_end("advise", &out, code);
  } else {
    ljp_command_error("advise", "out of memory");
    code = LJP_EXIT_FAILED;
  }
  ljp_advise_findings_fini(&findings);
  ljp_advise_facts_fini(&facts);
  return code;
}

int ljp_command_advise(int argc, char **argv)
{
  struct ljp_profile_options options = {.trace_stacks = true,
                                        .progress = ljp_progress_bytes};
  char error[LJP_READER_ERROR_BYTES + 64];
  struct ljp_progress progress;
  struct ljp_profile *p;
  const char *file;
  bool json = false, sarif = false;
  struct ljp_label_options labels = {0};
  const struct ljp_flag flags[] = {
      {"--json", &json, NULL},
      {"--sarif", &sarif, NULL},
      {"--thread", NULL, &options.thread},
      LJP_LABEL_FLAG(labels),
      {"--no-symbols", &options.no_symbols, NULL},
  };
  int code = ljp_command_options("advise", help, argc, argv, flags,
                                 sizeof flags / sizeof *flags, &file);
  if (code >= 0)
    return code;
  if (json && sarif) {
    ljp_command_error("advise", "only one of --json and --sarif can be given");
    return LJP_EXIT_USAGE;
  }
  if ((code = ljp_label_options("advise", &labels, &options)))
    return code;
  options.progress_ctx = &progress;
  ljp_progress_begin(&progress, file);
  enum ljp_status status = ljp_profile_load(file, &options, &p, error);
  ljp_progress_end(&progress);
  if (status) {
    ljp_command_error("advise", "%s: %s", file, error);
    return LJP_EXIT_FAILED;
  }
  code = command_judge(p, file, json, sarif);
  ljp_profile_free(p);
  return code;
}
