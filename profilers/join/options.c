/*
** Options of a session that a client asks for. Sessions that begin with a program
** let its VM read them as a Lua table (profilers/api/autostart.c); a helper must
** use no VM. The client has checked the values, and they are checked again. An
** option that this library does not know is an error: the client may be newer.
*/
#include "profilers/join/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/signals.h"

/* Digits, perhaps with a point: strtod() would want the comma of the program's
** locale. */
static bool options_number(const char *text, double low, double high,
                           double *out)
{
  double unit = 1;
  bool any = false, point = false;
  *out = 0;
  for (; (*text >= '0' && *text <= '9') || (*text == '.' && !point); text++) {
    if (*text == '.') {
      point = true;
      continue;
    }
    any = true;
    *out = *out * 10 + (*text - '0');
    unit = point ? unit * 10 : unit;
  }
  *out /= unit;
  return any && !*text && *out >= low && *out <= high;
}

/* The place of the value in words; -1: it is none of them. */
static int options_word(const char *text, const char *const words[])
{
  for (int i = 0; words[i]; i++)
    if (strcmp(text, words[i]) == 0)
      return i;
  return -1;
}

static bool options_is(const char *text, const char *wanted)
{
  return strcmp(text, wanted) == 0;
}

/* 1: taken; 0: the value is wrong; -1: no such option. */
static int options_take_cpu(struct ljp_sysprof_options *o, const char *name,
                            const char *value)
{
  static const char *const modes[] = {"D", "L", "C", NULL};
  static const char *const events[] = {"cpu", "wall", NULL};
  static const char *const timers[] = {"auto",  "perf", "trap",
                                       "posix", "tick", NULL};
  static const char *const threads[] = {"lua", "all", NULL};
  double number = 0;
  int word = 0;
  bool ok;
  if (options_is(name, "cpu.interval")) {
    ok = options_number(value, LJP_INTERVAL_MIN_NS / 1e6,
                        (double)LJP_INTERVAL_MAX_NS / 1e6, &number);
    o->interval_ns = (uint64_t)(number * 1e6 + 0.5);
  } else if (options_is(name, "cpu.depth")) {
    ok = options_number(value, 8, LJP_STACK_MAX_FRAMES, &number);
    o->depth = (uint32_t)number;
  } else if (options_is(name, "cpu.max_overhead")) {
    ok = options_number(value, 0, 100, &number);
    o->max_overhead = number / 100;
  } else if (options_is(name, "cpu.signal")) {
    o->signal = options_number(value, 1, SIGRTMAX, &number)
                    ? (int)number
                    : ljp_signal_named(value);
    ok = ljp_signal_usable(o->signal);
  } else if (options_is(name, "cpu.mode")) {
    ok = (word = options_word(value, modes)) >= 0;
    o->mode = (enum ljp_sampler_mode)word;
  } else if (options_is(name, "cpu.event")) {
    ok = (word = options_word(value, events)) >= 0;
    o->wall = word == 1;
  } else if (options_is(name, "cpu.timer")) {
    ok = (word = options_word(value, timers)) >= 0;
    o->timer = (enum ljp_timer)word;
  } else if (options_is(name, "cpu.threads")) {
    ok = (word = options_word(value, threads)) >= 0;
    o->threads = (enum ljp_sysprof_threads)word;
  } else {
    return -1;
  }
  return ok;
}

static bool options_flag(const char *value, bool *out)
{
  *out = options_is(value, "true");
  return *out || options_is(value, "false");
}

static int options_take_memory(struct ljp_memprof_options *o, const char *name,
                               const char *value)
{
  double number = 0;
  bool ok;
  if (options_is(name, "memory.sample")) {
    ok = options_number(value, 1, (double)LJP_MEMPROF_SAMPLE_MAX, &number);
    o->sample_bytes = (uint64_t)number;
  } else if (options_is(name, "memory.max_samples")) {
    ok = options_number(value, 0, LJP_MEMPROF_SAMPLES_MAX, &number);
    o->max_samples = (uint32_t)number;
  } else if (options_is(name, "memory.every")) {
    ok = options_is(value, "true");
    o->sample_bytes = 0;
  } else if (options_is(name, "memory.native")) {
    ok = options_flag(value, &o->native);
  } else if (options_is(name, "memory.depth")) {
    ok = options_number(value, 8, LJP_STACK_MAX_FRAMES, &number);
    o->depth = (uint32_t)number;
  } else {
    return -1;
  }
  return ok;
}

static int options_take_part(struct ljp_recording *r, const char *name,
                             const char *value)
{
  if (options_is(name, "cpu"))
    return options_flag(value, &r->with_cpu);
  if (options_is(name, "memory"))
    return options_flag(value, &r->with_memory);
  int taken = options_take_memory(&r->memory, name, value);
  return taken < 0 ? options_take_cpu(&r->cpu, name, value) : taken;
}

static int options_take(struct ljp_recording *r, const char *name,
                        const char *value)
{
  struct ljp_output *output = &r->cpu.output;
  double number = 0;
  bool ok;
  if (options_is(name, "flush")) {
    ok = options_number(value, 10, 10000, &number);
    output->flush_ms = (uint32_t)number;
  } else if (options_is(name, "compress")) {
    ok = options_number(value, 0, 19, &number);
    output->zstd_level = (int)number;
  } else if (options_is(name, "rotate_bytes")) {
    ok = options_number(value, 4096, 1e15, &number);
    output->segment_bytes = (uint64_t)number;
  } else if (options_is(name, "rotate_seconds")) {
    ok = options_number(value, 0.1, 1e9, &number);
    output->segment_ms = (uint64_t)(number * 1000);
  } else if (options_is(name, "keep")) { /* The client removes the others. */
    ok = options_number(value, 0, 1e6, &number);
  } else if (options_is(name, "sync")) {
    ok = options_is(value, "true");
    output->sync = ok;
  } else if (options_is(name, "duration")) {
    ok = options_number(value, 0.001, 1e9, &number);
    output->until_ns = ok ? ljp_clock_ns() + (uint64_t)(number * 1e9) : 0;
  } else {
    return options_take_part(r, name, value);
  }
  return ok;
}

/* For the client, who may free what it has read of its file. */
static int options_take_room(uint64_t *room, const char *value)
{
  double number = 0;
  bool ok = options_number(value, 4096, 1e15, &number);
  *room = ok ? (uint64_t)number : 0;
  return ok;
}

bool ljp_join_options(struct ljp_recording *r, char *text,
                      struct ljp_failure *why)
{
  *r = (struct ljp_recording){.with_cpu = true};
  ljp_sysprof_options_init(&r->cpu);
  ljp_memprof_options_init(&r->memory);
  r->cpu.jitdump = false; /* its files would be opened here */
  while (*text) {
    char *name = text, *value = text + strcspn(text, "=;");
    if (*value != '=') {
      ljp_fail(why, LJP_ERR_USE, EINVAL, "option '%.100s' has no value", name);
      return false;
    }
    *value++ = '\0';
    if (options_is(name, "path")) {
      r->cpu.output.path = value;
      if (!r->with_cpu && !r->with_memory)
        ljp_fail(why, LJP_ERR_USE, EINVAL,
                 "the request asks for neither CPU samples nor memory");
      return r->with_cpu || r->with_memory;
    }
    text = value + strcspn(value, ";");
    if (*text)
      *text++ = '\0';
    int taken = options_is(name, "room") ? options_take_room(&r->room, value)
                                         : options_take(r, name, value);
    if (taken == 1)
      continue;
    ljp_fail(why, LJP_ERR_USE, EINVAL,
             taken ? "the program's library does not know option '%.100s' "
                     "in a session that is begun from outside"
                   : "option '%.100s' cannot be '%.100s'",
             name, value);
    return false;
  }
  ljp_fail(why, LJP_ERR_USE, EINVAL, "the request names no path");
  return false;
}

void ljp_join_clean(char *out, size_t room, const char *path)
{
  size_t i = 0;
  for (; i < room - 1 && path[i]; i++)
    out[i] = path[i] >= ' ' && path[i] < 127 ? path[i] : '?';
  out[i] = '\0';
}
