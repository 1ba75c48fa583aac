/*
** The options of ljprof record: those of start{} in the interfaces for Lua, by
** the same names and with the same bounds, so that what is wrong is said before
** the program runs. What else start refuses, the library says (autostart.c).
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/signals.h"
#include "tools/shared/command.h"
#include "tools/record/record.h"

static const char help[] =
    "Usage: ljprof record [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
    "Runs a program that uses LuaJIT as a shared library, with ours in its\n"
    "place, and records it from its first VM to its end.\n\n"
    "  -o FILE           the stream (default: PROGRAM.ljp)\n"
    "  --force           replace FILE if it is there\n"
    "  --interval MS     milliseconds between samples, 0.05 to 60000 "
    "(default 1)\n"
    "  --event EVENT     cpu (default), or wall: threads that wait, too\n"
    "  --timer TIMER     perf, trap, posix, or auto (default): perf where it "
    "is\n"
    "                    permitted, else posix\n"
    "  --mode MODE       C (default): whole stacks; L: the innermost "
    "function;\n"
    "                    D: counters only\n"
    "  --threads WHICH   lua (default): all that run Lua; all; or this: that\n"
    "                    of the first VM\n"
    "  --signal SIGNAL   name or number of the signal to use (default PROF)\n"
    "  --max-overhead P  percent of a thread's time that samples may take\n"
    "                    (default 5; 0: no limit)\n"
    "  --depth N         frames of a stack at most, 8 to 2048 (default 2048)\n"
    "  --memory          allocations as well, sampled\n"
    "  --sample BYTES    ... one sample in so many bytes (default 524288)\n"
    "  --every           ... every allocation instead\n"
    "  --native          ... with C frames in their stacks\n"
    "  --no-cpu          no CPU samples (with --memory)\n"
    "  --children        programs and forks that it starts, too: each into\n"
    "                    FILE.PID\n"
    "  --jitdump         jit-PID.dump and /tmp/perf-PID.map for perf\n"
    "  --compress N      level of zstd compression, 0 (default: none) to 19\n"
    "  --flush MS        milliseconds that FILE may be behind (default 250)\n"
    "  --sync            write through to the disk\n"
    "  --rotate-bytes N  go on in FILE.s1, FILE.s2 ... after so many bytes\n"
    "  --rotate-seconds S ... after so many seconds\n"
    "  --keep N          ... and remove all of these but the last N\n"
    "  --embed-symbols   put the names of machine code into FILE, so that it\n"
    "                    reads the same on another machine\n"
    "  --help            this text\n\n"
    "Exit code: that of the program (128 and more: ended by a signal); 1 if\n"
    "it went well but nothing was recorded, 2 called wrongly, 126 and 127 if\n"
    "it could not be run.\n";

enum part { SESSION, CPU, MEMORY, BOTH };
enum kind { NUMBER, WHOLE, WORD, SIGNAL };

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

/* -- Checks --------------------------------------------------------------------- */

static bool options_is_number(const char *text, double low, double high)
{
  char *end;
  double number = strtod(text, &end);
  /* false for NaN */
  return end != text && !*end && number >= low && number <= high;
}

static bool options_is_digits(const char *text)
{
  return text[strspn(text, "0123456789")] == '\0';
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

static bool options_is_signal(const char *text)
{
  if (*text && options_is_digits(text))
    return options_is_number(text, 1, SIGRTMAX) &&
           ljp_signal_usable((int)strtol(text, NULL, 10));
  return ljp_signal_usable(ljp_signal_named(text));
}

static bool options_accepts(const struct option *o, const char *text)
{
  switch (o->kind) {
  case NUMBER:
    return options_is_number(text, o->low, o->high);
  case WHOLE:
    return options_is_digits(text) && options_is_number(text, o->low, o->high);
  case WORD:
    return options_is_word(text, o->words);
  case SIGNAL:
    return options_is_signal(text);
  }
  return false;
}

static int options_refuse(const char *text)
{
  ljp_command_error("record", "%s", text);
  return LJP_EXIT_USAGE;
}

static int options_check_values(const struct ljp_record_plan *plan)
{
  for (int i = 0; i < LJP_RECORD_VALUE_COUNT; i++) {
    const struct option *o = &record_options[i];
    if (!plan->value[i] || options_accepts(o, plan->value[i]))
      continue;
    ljp_command_error("record", "%s is '%s', but wants %s", o->flag,
                      plan->value[i], o->wants);
    return LJP_EXIT_USAGE;
  }
  return -1;
}

/* Which option is about a part that is not recorded, if any. */
static const char *options_vain(const struct ljp_record_plan *plan,
                                enum part part)
{
  for (int i = 0; i < LJP_RECORD_VALUE_COUNT; i++)
    if (plan->value[i] && record_options[i].part == part)
      return record_options[i].flag;
  if (part == CPU)
    return plan->jitdump ? "--jitdump" : NULL;
  return plan->every ? "--every" : plan->native ? "--native" : NULL;
}

static int options_check_together(const struct ljp_record_plan *plan)
{
  const char *event = plan->value[LJP_RECORD_EVENT];
  const char *timer = plan->value[LJP_RECORD_TIMER];
  const char *vain;
  if (plan->value[LJP_RECORD_SAMPLE] && plan->every)
    return options_refuse("--sample and --every contradict each other");
  if (!plan->memory && (vain = options_vain(plan, MEMORY)) != NULL) {
    ljp_command_error("record", "%s is about --memory, which is not given",
                      vain);
    return LJP_EXIT_USAGE;
  }
  if (!plan->memory && plan->no_cpu)
    return options_refuse("--no-cpu without --memory records nothing");
  if (plan->no_cpu && (vain = options_vain(plan, CPU)) != NULL) {
    ljp_command_error("record",
                      "%s is about CPU samples, but --no-cpu is given", vain);
    return LJP_EXIT_USAGE;
  }
  if (event && strcmp(event, "wall") == 0 && timer &&
      !options_is_word(timer, "posix auto"))
    return options_refuse("--event wall needs --timer posix (or auto)");
  if (timer && strcmp(timer, "trap") == 0 && plan->value[LJP_RECORD_SIGNAL])
    return options_refuse("--timer trap sends signal 5 (SIGTRAP) and no other; "
                          "leave --signal out");
  if (plan->embed && ljp_record_rotates(plan))
    return options_refuse(
        "--embed-symbols is about one file: ljprof merge makes "
        "one of segments, ljprof embed puts the names into it");
  if (plan->value[LJP_RECORD_KEEP] && !ljp_record_rotates(plan))
    return options_refuse("--keep is about --rotate-bytes or --rotate-seconds, "
                          "of which none is given");
  return -1;
}

int ljp_record_options(struct ljp_record_plan *plan, int argc, char **argv)
{
  struct ljp_flag flags[LJP_RECORD_VALUE_COUNT + 11] = {
      {"-o", NULL, &plan->output},
      {"--output", NULL, &plan->output},
      {"--force", &plan->force, NULL},
      {"--memory", &plan->memory, NULL},
      {"--every", &plan->every, NULL},
      {"--native", &plan->native, NULL},
      {"--no-cpu", &plan->no_cpu, NULL},
      {"--children", &plan->children, NULL},
      {"--jitdump", &plan->jitdump, NULL},
      {"--sync", &plan->sync, NULL},
      {"--embed-symbols", &plan->embed, NULL}};
  for (int i = 0; i < LJP_RECORD_VALUE_COUNT; i++)
    flags[11 + i] =
        (struct ljp_flag){record_options[i].flag, NULL, &plan->value[i]};
  int code = ljp_command_program("record", help, argc, argv, flags,
                                 sizeof flags / sizeof *flags, &plan->program);
  if (code < 0)
    code = options_check_values(plan);
  return code < 0 ? options_check_together(plan) : code;
}

/* -- What the library is told --------------------------------------------------- */

bool ljp_record_request(const struct ljp_record_plan *plan, char *out,
                        size_t room)
{
  size_t at = 0;
#define PUT(...)                                                               \
  at += (size_t)snprintf(at < room ? out + at : NULL,                          \
                         at < room ? room - at : 0, __VA_ARGS__)
  PUT("pid=%ld;", (long)getpid());
  if (plan->children)
    PUT("children=true;fork=follow;");
  if (plan->jitdump)
    PUT("jitdump=true;");
  if (plan->sync)
    PUT("sync=true;");
  if (plan->no_cpu)
    PUT("cpu=false;");
  if (!plan->memory)
    PUT("memory=false;");
  else if (plan->every)
    PUT("memory.every=true;");
  else if (!plan->value[LJP_RECORD_SAMPLE])
    PUT("memory.sample=524288;");
  if (plan->native)
    PUT("memory.native=true;");
  for (int i = 0; i < LJP_RECORD_VALUE_COUNT; i++) {
    const struct option *o = &record_options[i];
    const char *value = plan->value[i];
    if (!value)
      continue;
    if (o->part == SESSION)
      PUT("%s=%s;", o->name, value);
    if ((o->part == CPU || o->part == BOTH) && !plan->no_cpu)
      PUT("cpu.%s=%s;", o->name, value);
    if ((o->part == MEMORY || o->part == BOTH) && plan->memory)
      PUT("memory.%s=%s;", o->name, value);
  }
  PUT("path=%s", plan->path); /* the last one: it may hold any byte */
#undef PUT
  return at < room;
}
