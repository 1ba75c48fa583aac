/*
** The options of ljprof record. They have the names and bounds of the options
** of start{} in Lua, so that mistakes are found before the program runs. The
** library checks everything else (profilers/api/autostart.c).
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/own_path.h"
#include "src/base/preload.h"
#include "src/base/signals.h"
#include "tools/record/record.h"
#include "tools/shared/command.h"

double ljp_record_duration(const struct ljp_record_plan *plan)
{
  const char *text = plan->set.value[LJP_SETTING_DURATION];
  if (plan->set.value[LJP_SETTING_REPORT])
    text = plan->set.value[LJP_SETTING_REPORT];
  return text ? ljp_setting_seconds(text) : 0;
}

bool ljp_record_snapshots(const struct ljp_record_plan *plan)
{
  return plan->set.snapshot || plan->set.value[LJP_SETTING_SNAPSHOT];
}

double ljp_record_snapshot_every(const struct ljp_record_plan *plan)
{
  const char *text = plan->set.value[LJP_SETTING_SNAPSHOT];
  return text ? ljp_setting_seconds(text) : 0;
}

static int options_refuse(const struct ljp_record_plan *plan, const char *text)
{
  ljp_command_error(plan->command, "%s", text);
  return LJP_EXIT_USAGE;
}

static int options_check_values(const struct ljp_record_plan *plan)
{
  for (int i = 0; i < LJP_SETTING_COUNT; i++) {
    const struct ljp_setting_info *o = &ljp_settings_info[i];
    if (!plan->set.value[i] ||
        ljp_setting_accepts((enum ljp_setting)i, plan->set.value[i]))
      continue;
    ljp_command_error(plan->command, "%s is '%s', but must be %s", o->flag,
                      plan->set.value[i], o->wants);
    return LJP_EXIT_USAGE;
  }
  return -1;
}

/* --report makes a report of one file. */
static const char *options_check_report(const struct ljp_record_plan *plan)
{
  if (!plan->pid)
    return "--report is for a running program (-p PID); after one that is run, "
           "type 'ljprof report'";
#ifdef LJP_NO_ANALYZER
  return "--report needs the analyzer, without which this ljprof was built: "
         "record a file (-o FILE), and copy it to a machine with a full "
         "ljprof";
#else
  if (plan->set.value[LJP_SETTING_DURATION])
    return "--report says for how long, so --duration cannot be given with it";
  if (ljp_record_rotates(plan) || plan->children)
    return "--report is of one file, so it cannot be combined with rotation or "
           "--children";
  if (plan->embed && !plan->output)
    return "--embed-symbols needs a file (-o FILE)";
  if (plan->force && !plan->output)
    return "--force replaces a file: -o FILE is missing";
  return NULL;
#endif
}

/* --ring and what else makes a folder of files. */
static const char *options_check_store(const struct ljp_record_plan *plan)
{
  if (plan->pid)
    return "--ring, --continuous and --service are for a program that is "
           "started; with -p, type --rotate-bytes or --rotate-seconds and "
           "--keep";
  if (plan->force)
    return "--force replaces a file, but --ring, --continuous and --service "
           "replace none";
  return NULL;
}

static int options_check_together(const struct ljp_record_plan *plan)
{
  char text[LJP_SETTINGS_TEXT_BYTES];
  const char *why = ljp_settings_conflict(&plan->set, "--", text);
  if (!why && plan->jitdump && plan->set.no_cpu)
    why = "--jitdump configures CPU samples, but --no-cpu is given";
  if (!why && plan->embed && ljp_record_rotates(plan))
    why = "--embed-symbols cannot be combined with rotation: join the segments "
          "with 'ljprof merge', then run 'ljprof embed'";
  if (!why && plan->set.value[LJP_SETTING_REPORT])
    why = options_check_report(plan);
  if (!why && ljp_settings_store(&plan->set))
    why = options_check_store(plan);
  return why ? options_refuse(plan, why) : -1;
}

/* What a running program cannot be asked for (yet). */
static int options_check_joined(const struct ljp_record_plan *plan)
{
  const char *threads = plan->set.value[LJP_SETTING_THREADS];
  if (*plan->program) {
    ljp_command_error(
        plan->command,
        "-p %s records a running program, so '%s' cannot be run as well",
        plan->pid, *plan->program);
    return LJP_EXIT_USAGE;
  }
  if (plan->preload)
    return options_refuse(plan,
                          "--preload is for a program that is started; the one "
                          "of -p has loaded what it needs already");
  if (threads && *threads == 't')
    return options_refuse(plan,
                          "--threads this is the thread that starts the "
                          "recording, so with -p there is none: type 'lua' or "
                          "'all'");
  if (plan->jitdump)
    return options_refuse(plan,
                          "--jitdump is not possible with -p: type 'ljprof "
                          "jitdump -p PID'");
  return -1;
}

/* The flag and its words, as struct ljp_flag has them. */
static const char *options_flag(int i)
{
  static char text[LJP_SETTING_COUNT][64];
  snprintf(text[i], sizeof text[i], "%s %s", ljp_settings_info[i].flag,
           ljp_settings_info[i].words);
  return text[i];
}

/* Tells of the first of our options that stands behind the program, which gets
** it. A "--" before the program says that this is meant. */
static void options_behind(char *const *program, const struct ljp_flag *flags,
                           unsigned count)
{
  if (strcmp(program[-1], "--") == 0)
    return;
  for (int i = 1; program[i] && strcmp(program[i], "--") != 0; i++)
    for (unsigned f = 0; f < count; f++) {
      size_t len = strcspn(program[i], "=");
      if (len == ljp_command_length(&flags[f]) &&
          strncmp(program[i], flags[f].option, len) == 0) {
        ljp_command_note("record",
                         "%.*s is passed to %s, since it stands behind it: "
                         "options of ljprof record come first",
                         (int)len, flags[f].option, program[0]);
        return;
      }
    }
}

int ljp_record_options(struct ljp_record_plan *plan, int argc, char **argv)
{
  enum { FIXED = 15 };
  struct ljp_flag flags[LJP_SETTING_COUNT + FIXED] = {
      {"-o", NULL, &plan->output},
      {"--output", NULL, &plan->output},
      {"-p", NULL, &plan->pid},
      {"--pid", NULL, &plan->pid},
      {"--force", &plan->force, NULL},
      {"--memory", &plan->set.memory, NULL},
      {"--every", &plan->set.every, NULL},
      {"--native", &plan->set.native, NULL},
      {"--snapshot", &plan->set.snapshot, NULL},
      {"--no-cpu", &plan->set.no_cpu, NULL},
      {"--children", &plan->children, NULL},
      {"--preload", &plan->preload, NULL},
      {"--jitdump", &plan->jitdump, NULL},
      {"--sync", &plan->set.sync, NULL},
      {"--embed-symbols", &plan->embed, NULL}};
  for (int i = 0; i < LJP_SETTING_COUNT; i++)
    flags[FIXED + i] =
        (struct ljp_flag){options_flag(i), NULL, &plan->set.value[i]};
  plan->command = "record";
  int code = ljp_command_program("record", ljp_record_help, argc, argv, flags,
                                 sizeof flags / sizeof *flags, &plan->pid,
                                 &plan->program);
  if (code < 0)
    code = options_check_values(plan);
  if (code < 0) {
    ljp_settings_apply_preset(&plan->set);
    code = options_check_together(plan);
  }
  /* A service is all of its processes. */
  plan->children |= ljp_settings_store(&plan->set);
  if (code < 0 && plan->pid)
    code = options_check_joined(plan);
  else if (code < 0)
    options_behind(plan->program, flags, sizeof flags / sizeof *flags);
  return code;
}

/* -- A view of a running program --------------------------------------------- */
static bool options_for_view(int i)
{
  return (ljp_settings_info[i].part == LJP_PART_CPU && i != LJP_SETTING_MODE) ||
         i == LJP_SETTING_DEPTH || i == LJP_SETTING_SAMPLE ||
         i == LJP_SETTING_MAX_SAMPLES || i == LJP_SETTING_FLUSH ||
         i == LJP_SETTING_DURATION;
}

unsigned ljp_record_view_flags(struct ljp_record_plan *plan,
                               struct ljp_flag *flags)
{
  unsigned n = 0;
  flags[n++] = (struct ljp_flag){"--memory", &plan->set.memory, NULL};
  flags[n++] = (struct ljp_flag){"--every", &plan->set.every, NULL};
  for (int i = 0; i < LJP_SETTING_COUNT; i++)
    if (options_for_view(i))
      flags[n++] =
          (struct ljp_flag){options_flag(i), NULL, &plan->set.value[i]};
  return n;
}

int ljp_record_view_check(struct ljp_record_plan *plan)
{
  static char *nothing;
  plan->program = &nothing;
  const char *given = plan->set.memory  ? "--memory"
                      : plan->set.every ? "--every"
                                        : NULL;
  for (int i = 0; !given && i < LJP_SETTING_COUNT; i++)
    given = plan->set.value[i] ? ljp_settings_info[i].flag : NULL;
  if (given && !plan->pid) {
    ljp_command_error(plan->command,
                      "%s is for a running program (-p PID): a file has what "
                      "was recorded",
                      given);
    return LJP_EXIT_USAGE;
  }
  int code = options_check_values(plan);
  if (code < 0)
    code = options_check_together(plan);
  return code < 0 && plan->pid ? options_check_joined(plan) : code;
}

/* -- The request to the library
** ------------------------------------------------- */

#define PUT(...)                                                               \
  at += (size_t)snprintf(at < room ? out + at : NULL,                          \
                         at < room ? room - at : 0, __VA_ARGS__)

bool ljp_record_request(const struct ljp_record_plan *plan, char *out,
                        size_t room)
{
  size_t at = 0;
  /* These two come first: see profilers/session/told.c. */
  if (plan->preload_once && !plan->preload)
    PUT(LJP_PRELOAD_BEGIN "%s" LJP_PRELOAD_FILE,
        plan->children ? LJP_PRELOAD_SELF : LJP_PRELOAD_ONCE,
        (unsigned long long)plan->file.st_dev,
        (unsigned long long)plan->file.st_ino);
  if (plan->told[1] >= 0)
    PUT("told=%d:%d:%llu:%llu;", (int)plan->told_pid, plan->told[1],
        (unsigned long long)plan->told_pipe.st_dev,
        (unsigned long long)plan->told_pipe.st_ino);
  PUT("pid=%ld;", (long)getpid());
  PUT("began=%" PRIu64 ";before=" LJP_FILE_ID ";",
      (uint64_t)plan->began.tv_sec * 1000000000 + (uint64_t)plan->began.tv_nsec,
      LJP_FILE_ID_OF(&plan->before));
  if (plan->until_ns)
    PUT("until=%" PRIu64 ";", plan->until_ns);
  if (plan->children)
    PUT("children=true;fork=follow;");
  if (plan->jitdump)
    PUT("jitdump=true;");
  if (!plan->set.memory)
    PUT("memory=false;");
  at = ljp_settings_put(&plan->set, out, room, at);
  /* The path must come last: it may contain any byte. */
  PUT("path=%s", plan->path);
  return at < room;
}

bool ljp_record_joined_request(const struct ljp_record_plan *plan, char *out,
                               size_t room)
{
  size_t at = 0;
  /* Before the end, this process asks for the last heap snapshots. */
  if (ljp_record_duration(plan) > 0 && !ljp_record_snapshots(plan))
    PUT("duration=%.3f;", ljp_record_duration(plan));
  if (plan->room)
    PUT("room=%" PRIu64 ";", plan->room);
  if (plan->set.memory)
    PUT("memory=true;");
  struct ljp_settings set = plan->set;
  /* This process asks for each snapshot. */
  set.value[LJP_SETTING_SNAPSHOT] = NULL;
  set.snapshot = false;
  at = ljp_settings_put(&set, out, room, at);
  PUT("path=%s", plan->path);
  /* In the program the path is for messages only, which are UTF-8. */
  for (char *p = out; at < room && *p; p++)
    if (*p < ' ' || *p > '~')
      *p = '?';
  return at < room;
}
#undef PUT
