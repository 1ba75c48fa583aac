/*
** See joined.h. The file is made here; the program gets a descriptor.
*/
#include "tools/heap/joined.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/heap_format.h"
#include "tools/join/nameless.h"
#include "tools/join/sandbox.h"
#include "tools/join/talk.h"
#include "tools/shared/command.h"
#include "tools/shared/outfile.h"

enum { VMS = 600, ANSWER_MS = 10000, COPY_MS = 30000, WRITE_MS = 660000 };

/* Reads a number of an option. */
static bool joined_number(const char *option, const char *text, uint64_t least,
                          uint64_t most, uint64_t *out)
{
  char *end;
  errno = 0;
  *out = strtoull(text, &end, 10);
  if (*text >= '0' && *text <= '9' && !*end && !errno && *out >= least &&
      *out <= most)
    return true;
  ljp_command_error(
      "heap", "%s wants a number from %" PRIu64 " to %" PRIu64 ", not '%s'",
      option, least, most, text);
  return false;
}

int ljp_heap_joined_check(const struct ljp_heap_joined_options *o, bool files)
{
  const char *alone = o->output         ? "--output"
                      : o->vm           ? "--vm"
                      : o->string_bytes ? "--string-bytes"
                      : o->gc           ? "--gc"
                      : o->force        ? "--force"
                                        : NULL;
  struct ljp_goal goal;
  uint64_t number;
  if (!o->pid && !alone)
    return -1;
  if (!o->pid)
    ljp_command_error("heap", "%s is for a running program: -p PID is missing",
                      alone);
  else if (files)
    ljp_command_error("heap",
                      "-p PID takes a snapshot of its own: no FILE, "
                      "--diff, --sites, --label, --by or --snapshot can "
                      "be given; 'ljprof record -p PID --memory "
                      "--snapshot' makes a FILE that has sites");
  else if (o->force && !o->output)
    ljp_command_error("heap", "--force replaces a file: -o FILE is missing");
  else if (o->output && strcmp(o->output, "-") == 0)
    ljp_command_error("heap", "-o is '-', but the program writes the snapshot "
                              "into a file: give its name");
  else if ((!o->vm || joined_number("--vm", o->vm, 1, UINT32_MAX, &number)) &&
           (!o->string_bytes ||
            joined_number("--string-bytes", o->string_bytes, 0,
                          LJP_HEAP_TEXT_MAX_BYTES, &number)))
    return ljp_talk_goal("heap", o->pid, &goal);
  return LJP_EXIT_USAGE;
}

/* -- VMs ------------------------------------------------------------------- */

struct joined {
  const struct ljp_heap_joined_options *options;
  struct ljp_talk talk;
  uint32_t vms[VMS];
  unsigned count;
  uint64_t more;  /* VMs that are not in the list */
  char list[256]; /* of their numbers, for messages */
};

/* Reads the numbers of the VMs. -1, or the exit code. */
static int joined_list(struct joined *j)
{
  char text[LJP_JOIN_MESSAGE_BYTES], *at = text;
  struct ljp_join_message m = {.type = LJP_JOIN_VMS};
  ljp_talk_send(&j->talk, &m);
  int code = ljp_talk_answer(&j->talk, LJP_JOIN_VM_LIST, ANSWER_MS);
  if (code >= 0)
    return code;
  ljp_join_text(&j->talk.message, 0, text, sizeof text);
  snprintf(j->list, sizeof j->list, "%.240s", text);
  while (j->count < VMS) {
    char *end;
    unsigned long number = strtoul(at, &end, 10);
    if (end == at || number > UINT32_MAX)
      break;
    j->vms[j->count++] = (uint32_t)number;
    at = end;
  }
  if (j->talk.message.number[0] > j->count)
    j->more = j->talk.message.number[0] - j->count;
  return -1;
}

/* Which of them are wanted. -1, or the exit code. */
static int joined_choose(struct joined *j, bool json)
{
  const struct ljp_heap_joined_options *o = j->options;
  uint32_t wanted = o->vm ? (uint32_t)strtoul(o->vm, NULL, 10) : 0;
  bool there = false;
  for (unsigned i = 0; i < j->count; i++)
    there |= j->vms[i] == wanted;
  if (!j->count)
    ljp_command_error("heap", "%s has no VM now", j->talk.name);
  else if (wanted && !there && !j->more)
    ljp_command_error("heap", "--vm is %" PRIu32 ", but %s has these: %s",
                      wanted, j->talk.name, j->list);
  else if (!wanted && j->count + j->more > 1 && (o->output || json))
    ljp_command_error("heap",
                      "%s has several VMs, and %s is for one: choose it by "
                      "--vm N (%s)",
                      j->talk.name, json ? "--json" : "-o", j->list);
  else {
    if (wanted) {
      j->vms[0] = wanted;
      j->count = 1;
    } else if (j->more) {
      ljp_command_note("heap",
                       "%s has %" PRIu64 " VMs more than the %u that are "
                       "shown: choose one by --vm N",
                       j->talk.name, j->more, j->count);
    }
    return -1;
  }
  return j->count ? LJP_EXIT_USAGE : LJP_EXIT_FAILED;
}

/* -- A snapshot ------------------------------------------------------------ */

/* Has one written to fd. -1, or the exit code. */
static int joined_take(struct joined *j, uint32_t vm, int fd)
{
  const struct ljp_heap_joined_options *o = j->options;
  struct ljp_join_message m = {
      .type = LJP_JOIN_HEAP,
      .number = {vm, o->string_bytes ? strtoul(o->string_bytes, NULL, 10) : 64,
                 o->gc},
      .fd = {fd},
      .fds = 1};
  ljp_talk_send(&j->talk, &m);
  int code = ljp_talk_answer(&j->talk, LJP_JOIN_COPIED, COPY_MS);
  if (code < 0)
    code = ljp_talk_answer(&j->talk, LJP_JOIN_HEAP_DONE, WRITE_MS);
  if (code >= 0)
    return code;
  const uint64_t *n = j->talk.message.number;
  if (n[0] == LJP_HEAP_TAKEN_MOMENT)
    ljp_command_note("heap",
                     "VM %" PRIu32 " was copied at any moment, since its "
                     "collector did not come to a moment at which the heap is "
                     "whole%s; objects or lists that could not be read: "
                     "%" PRIu64,
                     vm, o->gc ? ", and no garbage was collected" : "", n[7]);
  return -1;
}

/* Into a file that is only shown. */
static int joined_show(struct joined *j, uint32_t vm,
                       int (*show)(void *ctx, const char *path), void *ctx)
{
  struct ljp_nameless file;
  int code = ljp_nameless_open(&file, "heap");
  if (code >= 0)
    return code;
  code = joined_take(j, vm, file.fd);
  if (code < 0 && j->count > 1) {
    printf("%sVM %" PRIu32 "\n", vm == j->vms[0] ? "" : "\n", vm);
    fflush(stdout);
  }
  if (code < 0)
    code = show(ctx, file.path);
  close(file.fd);
  return code;
}

static int joined_keep(struct joined *j, uint32_t vm,
                       int (*show)(void *ctx, const char *path), void *ctx)
{
  struct ljp_outfile out;
  const char *path = j->options->output;
  int code = ljp_outfile_open(&out, "heap", path, j->options->force);
  if (code >= 0)
    return code;
  code = joined_take(j, vm, out.fd);
  if (code >= 0) {
    ljp_outfile_abort(&out);
    return code;
  }
  code = ljp_outfile_commit(&out, 0);
  return code == LJP_EXIT_OK ? show(ctx, path) : code;
}

/* Takes each that is wanted, whatever becomes of the others. -1, or the exit
** code of the first one that failed. */
static int joined_each(struct joined *j,
                       int (*show)(void *ctx, const char *path), void *ctx)
{
  int worst = -1;
  for (unsigned i = 0; i < j->count; i++) {
    int code = j->options->output ? joined_keep(j, j->vms[i], show, ctx)
                                  : joined_show(j, j->vms[i], show, ctx);
    if (code <= 0)
      continue;
    worst = worst > 0 ? worst : code;
    if (ljp_talk_hear(&j->talk, 0, -1) == LJP_HEARD_END)
      break;
  }
  return worst;
}

/* The views read the file again. -1, or the exit code. */
static int joined_can_keep(const char *output)
{
  struct stat st;
  if (!output || stat(output, &st) || S_ISREG(st.st_mode))
    return -1;
  ljp_command_error(
      "heap", "%s is not a regular file: name another one with -o", output);
  return LJP_EXIT_FAILED;
}

int ljp_heap_joined(const struct ljp_heap_joined_options *options, bool json,
                    int (*show)(void *ctx, const char *path), void *ctx)
{
  static struct joined j;
  struct ljp_goal goal;
  j.options = options;
  int code = ljp_talk_goal("heap", options->pid, &goal);
  if (code < 0)
    code = joined_can_keep(options->output);
  if (code < 0)
    code = ljp_talk_join(&j.talk, "heap", &goal);
  if (code >= 0)
    return code;
  code = ljp_sandbox_refuse(&j.talk);
  if (code < 0)
    code = joined_list(&j);
  if (code < 0)
    code = joined_choose(&j, json);
  if (code < 0)
    code = joined_each(&j, show, ctx);
  ljp_talk_leave(&j.talk);
  return code < 0 ? LJP_EXIT_OK : code;
}
