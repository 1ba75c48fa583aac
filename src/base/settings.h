/*
** Settings: what a recording is asked for, and how it is handed to the library.
** `ljprof record` takes them as options, and the library from LJPROF_RECORD or a
** file (profilers/api/settings.c). One list, so both have the same names, bounds
** and messages. Nothing depends on the locale. Any thread.
*/
#ifndef LJP_SETTINGS_H
#define LJP_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

/* Settings with a value: flag, part of the session, name in start{}, kind,
** bounds or words, expected value. Names, bounds and words are those of
** start{} (profilers/api); those without a name are not passed on. */
#define LJP_SETTING_VALUES(_)                                                  \
  _(INTERVAL, "--interval", CPU, "interval", NUMBER, 0.05, 60000, "",          \
    "milliseconds, a number from 0.05 to 60000")                               \
  _(EVENT, "--event", CPU, "event", WORD, 0, 0, "cpu wall", "cpu or wall")     \
  _(TIMER, "--timer", CPU, "timer", WORD, 0, 0, "auto perf trap tick posix",   \
    "auto, perf, tick or posix")                                               \
  _(MODE, "--mode", CPU, "mode", WORD, 0, 0, "D L C",                          \
    "D (counters), L (leaf) or C (call graph)")                                \
  _(THREADS, "--threads", CPU, "threads", WORD, 0, 0, "lua all this",          \
    "lua (all that run Lua), all or this")                                     \
  _(SIGNAL, "--signal", CPU, "signal", SIGNAL, 0, 0, "", LJP_SIGNAL_WANTS)     \
  _(OVERHEAD, "--max-overhead", CPU, "max_overhead", NUMBER, 0, 100, "",       \
    "percent of a thread's time, a number from 0 (no limit) to 100")           \
  _(DEPTH, "--depth", BOTH, "depth", WHOLE, 8, 2048, "",                       \
    "a number of frames from 8 to 2048")                                       \
  _(SAMPLE, "--sample", MEMORY, "sample", SIZE, 1, 1e12, "",                   \
    "a number of bytes from 1 to 1e12, such as 4096, 64k or 1M")               \
  _(MAX_SAMPLES, "--max-samples", MEMORY, "max_samples", WHOLE, 0, 1e6, "",    \
    "a whole number of samples a second from 0 (no limit) to 1000000")         \
  _(SNAPSHOT, "--snapshot-every", MEMORY, "snapshot", TIME, 0.1, 1e9, "",      \
    "a number of seconds from 0.1 to 1e9, such as 60, 10s or 5m")              \
  _(FLUSH, "--flush", SESSION, "flush", WHOLE, 10, 10000, "",                  \
    "milliseconds, a whole number from 10 to 10000")                           \
  _(COMPRESS, "--compress", SESSION, "compress", WHOLE, 0, 19, "",             \
    "a level of compression, a whole number from 0 (none) to 19")              \
  _(ROTATE_BYTES, "--rotate-bytes", SESSION, "rotate_bytes", SIZE, 4096, 1e15, \
    "", "a number of bytes from 4096 to 1e15, such as 65536, 64k or 10M")      \
  _(ROTATE_SECONDS, "--rotate-seconds", SESSION, "rotate_seconds", NUMBER,     \
    0.1, 1e9, "", "a number of seconds from 0.1 to 1e9")                       \
  _(DURATION, "--duration", SESSION, "", TIME, 0.001, 1e9, "",                 \
    "a number of seconds from 0.001 to 1e9, such as 10, 0.5, 500ms, 5m or 1h") \
  _(REPORT, "--report", SESSION, "", TIME, 0.001, 1e9, "",                     \
    "a number of seconds from 0.001 to 1e9, such as 10, 0.5, 500ms, 5m or 1h") \
  _(KEEP, "--keep", SESSION, "keep", WHOLE, 0, 1e6, "",                        \
    "a number of files from 1 to 1000000 (0: all)")                            \
  _(RING, "--ring", SESSION, "ring", SIZE, 1048576, 1e15, "",                  \
    "a number of bytes from 1M to 1e15, such as 500M or 2G")                   \
  _(CONTINUOUS, "--continuous", SESSION, "rotate_seconds", TIME, 0.1, 1e9, "", \
    "a number of seconds from 0.1 to 1e9, such as 60s, 10m or 1h")             \
  _(SERVICE, "--service", SESSION, "service", SERVICE, 0, 0, "",               \
    "a name of at most 64 letters, digits and \"._+@-\"")                      \
  _(PRESET, "--preset", SESSION, "", WORD, 0, 0, "production", "production")

enum ljp_setting {
#define LJP_X(id, ...) LJP_SETTING_##id,
  LJP_SETTING_VALUES(LJP_X)
#undef LJP_X
      LJP_SETTING_COUNT
};

enum ljp_setting_part {
  LJP_PART_SESSION,
  LJP_PART_CPU,
  LJP_PART_MEMORY,
  LJP_PART_BOTH
};
enum ljp_setting_kind {
  LJP_KIND_NUMBER,
  LJP_KIND_WHOLE,
  LJP_KIND_SIZE,
  LJP_KIND_TIME,
  LJP_KIND_WORD,
  LJP_KIND_SIGNAL,
  LJP_KIND_SERVICE
};

struct ljp_setting_info {
  const char *flag; /* As an option: "--ring". */
  enum ljp_setting_part part;
  const char *name;
  enum ljp_setting_kind kind;
  double low, high;
  const char *words, *wants;
};

extern const struct ljp_setting_info ljp_settings_info[LJP_SETTING_COUNT];

/* Borrowed strings; NULL: not given. */
struct ljp_settings {
  const char *value[LJP_SETTING_COUNT];
  bool memory, every, native, snapshot, no_cpu, sync;
};

/* Bytes, with a unit of 1024, 1024^2 or 1024^3: "64k", "1.5M", "1GiB". Seconds,
** with a unit: "10", "0.5s", "500ms", "5m", "1h". Negative: it is none. */
double ljp_setting_bytes(const char *text);
double ljp_setting_seconds(const char *text);

/* May the setting have this value? */
bool ljp_setting_accepts(enum ljp_setting setting, const char *text);

/* What a preset stands for becomes the value of each setting that is not given. */
void ljp_settings_apply_preset(struct ljp_settings *set);

/* Do the files go into a store (store_name.h)? */
static inline bool ljp_settings_store(const struct ljp_settings *set)
{
  return set->value[LJP_SETTING_RING] || set->value[LJP_SETTING_CONTINUOUS] ||
         set->value[LJP_SETTING_SERVICE];
}

/* Why the settings contradict each other, in out; NULL: they do not. dash: stands
** before each name, "--" or "". */
enum { LJP_SETTINGS_TEXT_BYTES = 256 };
const char *ljp_settings_conflict(const struct ljp_settings *set,
                                  const char *dash,
                                  char out[LJP_SETTINGS_TEXT_BYTES]);

/* Writes "name=value;" for all that start{} is to have, from out + at on. Returns
** where the text ends; room or more: it did not fit. */
size_t ljp_settings_put(const struct ljp_settings *set, char *out, size_t room,
                        size_t at);

#endif
