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

enum part { SESSION, CPU, MEMORY, BOTH };
enum kind { NUMBER, WHOLE, SIZE, TIME, WORD, SIGNAL };

static const struct option {
  const char *flag;
  enum part part;
  const char *name;
  enum kind kind;
  double low, high;
  const char *words, *wants;
} record_options[] = {
#define LJP_X(id, ...) {__VA_ARGS__},
    LJP_RECORD_VALUES(LJP_X)
#undef LJP_X
};

/* -- Checks
** --------------------------------------------------------------------- */

static bool options_is_number(const char *text, double low, double high)
{
  char *end;
  double number = strtod(text, &end);
  /* False for NaN. */
  return end != text && !*end && number >= low && number <= high;
}

static bool options_is_digits(const char *text)
{
  return text[strspn(text, "0123456789")] == '\0';
}

/* Bytes, with a unit of 1024, 1024^2 or 1024^3: "64k", "1.5M", "1GiB". Negative:
** it is none. */
double ljp_record_bytes(const char *text)
{
  static const char units[] = "kmg";
  char *end;
  double number = strtod(text, &end);
  if (end == text || !strchr("0123456789.", *text) || strpbrk(text, "xX"))
    return -1;
  const char *unit = *end ? strchr(units, *end | 0x20) : NULL;
  for (const char *u = units; unit && u <= unit; u++)
    number *= 1024;
  end += unit != NULL;
  if (unit && strncmp(end, "iB", 2) == 0)
    end++;
  if (*end == 'B')
    end++;
  return *end ? -1 : number;
}

/* Seconds, with a unit: "10", "0.5s", "500ms", "5m", "1h". Negative: none. */
static double options_seconds(const char *text)
{
  static const struct {
    const char *name;
    double seconds;
  } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"h", 3600}};
  char *end;
  double number = strtod(text, &end);
  if (end == text || !strchr("0123456789.", *text) || strpbrk(text, "xX"))
    return -1;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (strcmp(end, units[i].name) == 0)
      return number * units[i].seconds;
  return -1;
}

double ljp_record_duration(const struct ljp_record_plan *plan)
{
  const char *text = plan->value[LJP_RECORD_DURATION];
  if (plan->value[LJP_RECORD_REPORT])
    text = plan->value[LJP_RECORD_REPORT];
  return text ? options_seconds(text) : 0;
}

bool ljp_record_snapshots(const struct ljp_record_plan *plan)
{
  return plan->snapshot || plan->value[LJP_RECORD_SNAPSHOT];
}

double ljp_record_snapshot_every(const struct ljp_record_plan *plan)
{
  const char *text = plan->value[LJP_RECORD_SNAPSHOT];
  return text ? options_seconds(text) : 0;
}

static bool options_is_size(const struct option *o, const char *text)
{
  double bytes = ljp_record_bytes(text);
  return bytes >= o->low && bytes <= o->high && bytes == (uint64_t)bytes;
}

static bool options_is_word(const char *text, const char *words)
{
  size_t len = strlen(text);
  for (const char *p = words; *p; p += *p == ' ') {
    size_t n = strcspn(p, " ");
    if (n == len && memcmp(p, text, n) == 0)
      return true;
    p += n;
  }
  return false;
}

static bool options_accepts(const struct option *o, const char *text)
{
  switch (o->kind) {
  case NUMBER:
    return options_is_number(text, o->low, o->high);
  case WHOLE:
    return options_is_digits(text) && options_is_number(text, o->low, o->high);
  case SIZE:
    return options_is_size(o, text);
  case TIME:
    return options_seconds(text) >= o->low && options_seconds(text) <= o->high;
  case WORD:
    return options_is_word(text, o->words);
  case SIGNAL:
    return ljp_signal_usable(ljp_signal_named(text));
  }
  return false;
}

static int options_refuse(const struct ljp_record_plan *plan, const char *text)
{
  ljp_command_error(plan->command, "%s", text);
  return LJP_EXIT_USAGE;
}

static int options_check_values(const struct ljp_record_plan *plan)
{
  for (int i = 0; i < LJP_RECORD_VALUE_COUNT; i++) {
    const struct option *o = &record_options[i];
    if (!plan->value[i] || options_accepts(o, plan->value[i]))
      continue;
    ljp_command_error(plan->command, "%s is '%s', but must be %s", o->flag,
                      plan->value[i], o->wants);
    return LJP_EXIT_USAGE;
  }
  return -1;
}

/* The first option that concerns a part that is not recorded; NULL: none. */
static const char *options_vain(const struct ljp_record_plan *plan,
                                enum part part)
{
  for (int i = 0; i < LJP_RECORD_VALUE_COUNT; i++)
    if (plan->value[i] && record_options[i].part == part)
      return record_options[i].flag;
  if (part == CPU)
    return plan->jitdump ? "--jitdump" : NULL;
  return plan->every      ? "--every"
         : plan->native   ? "--native"
         : plan->snapshot ? "--snapshot"
                          : NULL;
}

static int options_check_together(const struct ljp_record_plan *plan)
{
  const char *vain;
  if (plan->value[LJP_RECORD_SAMPLE] && plan->every)
    return options_refuse(plan, "--sample and --every contradict each other");
  if (!plan->memory && (vain = options_vain(plan, MEMORY)) != NULL) {
    ljp_command_error(plan->command, "%s needs --memory", vain);
    return LJP_EXIT_USAGE;
  }
  if (!plan->memory && plan->no_cpu)
    return options_refuse(plan, "--no-cpu without --memory records nothing");
  if (plan->no_cpu && (vain = options_vain(plan, CPU)) != NULL) {
    ljp_command_error("record",
                      "%s configures CPU samples, but --no-cpu is given", vain);
    return LJP_EXIT_USAGE;
  }
  if (plan->embed && ljp_record_rotates(plan))
    return options_refuse(
        plan,
        "--embed-symbols cannot be combined with rotation: join the segments "
        "with 'ljprof merge', then run 'ljprof embed'");
  if (plan->value[LJP_RECORD_REPORT] && !plan->pid)
    return options_refuse(plan,
                          "--report is for a running program (-p PID); after "
                          "one that is run, type 'ljprof report'");
#ifdef LJP_NO_ANALYZER
  if (plan->value[LJP_RECORD_REPORT])
    return options_refuse(plan,
                          "--report needs the analyzer, without which this "
                          "ljprof was built: record a file (-o FILE), and copy "
                          "it to a machine with a whole ljprof");
#endif
  if (plan->value[LJP_RECORD_REPORT] && plan->value[LJP_RECORD_DURATION])
    return options_refuse(plan,
                          "--report says for how long, so --duration cannot be "
                          "given with it");
  if (plan->value[LJP_RECORD_REPORT] &&
      (ljp_record_rotates(plan) || plan->children))
    return options_refuse(plan,
                          "--report is of one file, so it cannot be combined "
                          "with rotation or --children");
  if (plan->value[LJP_RECORD_REPORT] && plan->embed && !plan->output)
    return options_refuse(plan, "--embed-symbols needs a file (-o FILE)");
  if (plan->value[LJP_RECORD_REPORT] && plan->force && !plan->output)
    return options_refuse(plan, "--force replaces a file: -o FILE is missing");
  if (plan->value[LJP_RECORD_KEEP] && !ljp_record_rotates(plan))
    return options_refuse(plan,
                          "--keep needs --rotate-bytes or --rotate-seconds");
  return -1;
}

/* What a running program cannot be asked for (yet). */
static int options_check_joined(const struct ljp_record_plan *plan)
{
  const char *threads = plan->value[LJP_RECORD_THREADS];
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

/* Tells of the first of our options that stands behind the program, which gets
** it. A "--" before the program says that this is meant. */
static void options_behind(char *const *program, const struct ljp_flag *flags,
                           unsigned count)
{
  if (strcmp(program[-1], "--") == 0)
    return;
  for (int i = 1; program[i] && strcmp(program[i], "--") != 0; i++)
    for (unsigned f = 0; f < count; f++)
      if (strncmp(program[i], flags[f].option, strcspn(program[i], "=")) == 0 &&
          flags[f].option[strcspn(program[i], "=")] == '\0') {
        ljp_command_note("record",
                         "%s is passed to %s, since it stands behind it: "
                         "options of ljprof record come first",
                         flags[f].option, program[0]);
        return;
      }
}

int ljp_record_options(struct ljp_record_plan *plan, int argc, char **argv)
{
  enum { FIXED = 15 };
  struct ljp_flag flags[LJP_RECORD_VALUE_COUNT + FIXED] = {
      {"-o", NULL, &plan->output},
      {"--output", NULL, &plan->output},
      {"-p", NULL, &plan->pid},
      {"--pid", NULL, &plan->pid},
      {"--force", &plan->force, NULL},
      {"--memory", &plan->memory, NULL},
      {"--every", &plan->every, NULL},
      {"--native", &plan->native, NULL},
      {"--snapshot", &plan->snapshot, NULL},
      {"--no-cpu", &plan->no_cpu, NULL},
      {"--children", &plan->children, NULL},
      {"--preload", &plan->preload, NULL},
      {"--jitdump", &plan->jitdump, NULL},
      {"--sync", &plan->sync, NULL},
      {"--embed-symbols", &plan->embed, NULL}};
  for (int i = 0; i < LJP_RECORD_VALUE_COUNT; i++)
    flags[FIXED + i] =
        (struct ljp_flag){record_options[i].flag, NULL, &plan->value[i]};
  plan->command = "record";
  int code = ljp_command_program("record", ljp_record_help, argc, argv, flags,
                                 sizeof flags / sizeof *flags, &plan->pid,
                                 &plan->program);
  if (code < 0)
    code = options_check_values(plan);
  if (code < 0)
    code = options_check_together(plan);
  if (code < 0 && plan->pid)
    code = options_check_joined(plan);
  else if (code < 0)
    options_behind(plan->program, flags, sizeof flags / sizeof *flags);
  return code;
}

/* -- A view of a running program --------------------------------------------- */
static bool options_for_view(int i)
{
  return (record_options[i].part == CPU && i != LJP_RECORD_MODE) ||
         i == LJP_RECORD_DEPTH || i == LJP_RECORD_SAMPLE ||
         i == LJP_RECORD_FLUSH || i == LJP_RECORD_DURATION;
}

unsigned ljp_record_view_flags(struct ljp_record_plan *plan,
                               struct ljp_flag *flags)
{
  unsigned n = 0;
  flags[n++] = (struct ljp_flag){"--memory", &plan->memory, NULL};
  flags[n++] = (struct ljp_flag){"--every", &plan->every, NULL};
  for (int i = 0; i < LJP_RECORD_VALUE_COUNT; i++)
    if (options_for_view(i))
      flags[n++] =
          (struct ljp_flag){record_options[i].flag, NULL, &plan->value[i]};
  return n;
}

int ljp_record_view_check(struct ljp_record_plan *plan)
{
  static char *nothing;
  plan->program = &nothing;
  const char *given = plan->memory  ? "--memory"
                      : plan->every ? "--every"
                                    : NULL;
  for (int i = 0; !given && i < LJP_RECORD_VALUE_COUNT; i++)
    given = plan->value[i] ? record_options[i].flag : NULL;
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

/* Adds the options with a value. Returns where the text ends. */
static size_t options_put_values(const struct ljp_record_plan *plan, char *out,
                                 size_t room, size_t at)
{
  for (int i = 0; i < LJP_RECORD_VALUE_COUNT; i++) {
    const struct option *o = &record_options[i];
    const char *value = plan->value[i];
    char bytes[32];
    if (!value || (o->kind == TIME && o->part == SESSION))
      continue; /* See ljp_record_duration(). */
    if (plan->pid && i == LJP_RECORD_SNAPSHOT)
      continue; /* This process asks for each. */
    if (o->kind == TIME) {
      snprintf(bytes, sizeof bytes, "%.3f", options_seconds(value));
      value = bytes;
    }
    if (o->kind == SIZE) {
      snprintf(bytes, sizeof bytes, "%.0f", ljp_record_bytes(value));
      value = bytes;
    }
    if (o->part == SESSION)
      PUT("%s=%s;", o->name, value);
    if ((o->part == CPU || o->part == BOTH) && !plan->no_cpu)
      PUT("cpu.%s=%s;", o->name, value);
    if ((o->part == MEMORY || o->part == BOTH) && plan->memory)
      PUT("memory.%s=%s;", o->name, value);
  }
  /* The path must come last: it may contain any byte. */
  PUT("path=%s", plan->path);
  return at;
}

/* Adds what the memory profiler is to record. */
static size_t options_put_memory(const struct ljp_record_plan *plan, char *out,
                                 size_t room, size_t at)
{
  if (plan->every)
    PUT("memory.every=true;");
  else if (!plan->value[LJP_RECORD_SAMPLE])
    PUT("memory.sample=524288;");
  if (plan->native)
    PUT("memory.native=true;");
  return at;
}

bool ljp_record_request(const struct ljp_record_plan *plan, char *out,
                        size_t room)
{
  size_t at = 0;
  /* These two come first: see profilers/session/told.c. */
  if (plan->preload_once && !plan->preload)
    PUT(LJP_PRELOAD_ONCE);
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
  if (plan->sync)
    PUT("sync=true;");
  if (plan->no_cpu)
    PUT("cpu=false;");
  if (plan->memory)
    at = options_put_memory(plan, out, room, at);
  else
    PUT("memory=false;");
  if (plan->snapshot && !plan->value[LJP_RECORD_SNAPSHOT])
    PUT("memory.snapshot=true;");
  return options_put_values(plan, out, room, at) < room;
}

bool ljp_record_joined_request(const struct ljp_record_plan *plan, char *out,
                               size_t room)
{
  size_t at = 0;
  /* Before the end, this process asks for the last heap snapshots. */
  if (ljp_record_duration(plan) > 0 && !ljp_record_snapshots(plan))
    PUT("duration=%.3f;", ljp_record_duration(plan));
  if (plan->sync)
    PUT("sync=true;");
  if (plan->room)
    PUT("room=%" PRIu64 ";", plan->room);
  if (plan->no_cpu)
    PUT("cpu=false;");
  if (plan->memory) {
    PUT("memory=true;");
    at = options_put_memory(plan, out, room, at);
  }
  at = options_put_values(plan, out, room, at);
  /* In the program the path is for messages only, which are UTF-8. */
  for (char *p = out; at < room && *p; p++)
    if (*p < ' ' || *p > '~')
      *p = '?';
  return at < room;
}
#undef PUT
