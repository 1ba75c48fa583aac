/*
** ljprof merge: makes one file of several (RFC 1, section 11): of the file
** segments of one session, of the sessions of a service's workers, or both.
** Files that do not belong together are refused.
*/
#include "tools/rewrite/merge.h"

#include <stdlib.h>
#include <unistd.h>

#include "tools/shared/command.h"
#include "tools/shared/outfile.h"

static const char help[] =
    "Usage: ljprof merge -o OUT [--force] [--unrelated] FILE...\n"
    "Combines several files into one: the segments of a rotated file in any "
    "order,\n"
    "the files of a service's workers, or both.\n"
    "\n"
    "  -o OUT        write to OUT ('-': standard output)\n"
    "  --force       replace OUT if it exists\n"
    "  --unrelated   also merge sessions of different programs\n"
    "  --help        show this help\n"
    "\n"
    "If the files come from machines with different clocks, times are aligned "
    "by\n"
    "the wall clock. Missing segments are reported, and stay missing in OUT.\n"
    "\n"
    "Exit code: 0 success, 1 failure or files that do not belong together,\n"
    "2 wrong usage.\n";

static int merge_files(struct ljp_merge *m, const char *to, bool force,
                       bool unrelated)
{
  static struct ljp_reader reader;
  struct ljp_outfile file;
  int code = -1;
  m->reader = &reader;
  for (unsigned i = 0; i < m->count; i++)
    if ((code = ljp_merge_identify(&reader, &m->inputs[i])) >= 0)
      return code;
  code = ljp_merge_sort(m, unrelated);
  if (code < 0)
    code = ljp_outfile_open(&file, "merge", to, force);
  if (code >= 0)
    return code;
  if (ljp_out_begin(&m->out, file.fd)) {
    code = m->sessions == 1 ? ljp_merge_append(m) : ljp_merge_sessions(m);
  } else {
    ljp_command_error("merge", "%s", ljp_status_text(LJP_ERR_MEM));
    code = LJP_EXIT_FAILED;
  }
  ljp_out_end(&m->out);
  if (code >= 0)
    ljp_outfile_abort(&file);
  else
    code = ljp_outfile_commit(&file, m->out.error);
  return code;
}

int ljp_command_merge(int argc, char **argv)
{
  struct ljp_merge m = {0};
  const char *to = NULL;
  bool force = false, unrelated = false;
  const struct ljp_flag flags[] = {{"--force", &force, NULL},
                                   {"--unrelated", &unrelated, NULL},
                                   {"-o", NULL, &to}};
  const char **files = calloc((size_t)argc, sizeof *files);
  m.inputs = calloc((size_t)argc, sizeof *m.inputs);
  int code = LJP_EXIT_FAILED;
  if (!files || !m.inputs)
    ljp_command_error("merge", "%s", ljp_status_text(LJP_ERR_MEM));
  else
    code =
        ljp_command_files("merge", help, argc, argv, flags, 3, files, &m.count);
  if (code < 0 && !to) {
    ljp_command_error("merge", "no output file given (-o OUT)");
    code = LJP_EXIT_USAGE;
  }
  for (unsigned i = 0; code < 0 && i < m.count; i++) {
    m.inputs[i].path = files[i];
    m.inputs[i].fd = -1;
  }
  if (code < 0)
    code = merge_files(&m, to, force, unrelated);
  for (unsigned i = 0; m.inputs && i < m.count; i++) {
    if (m.inputs[i].path && m.inputs[i].fd >= 0)
      close(m.inputs[i].fd);
    free(m.inputs[i].executable);
    free(m.inputs[i].script);
  }
  free(m.inputs);
  free((void *)files);
  return code;
}
