/*
** See settings.h.
*/
#include "src/base/settings.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "src/base/signals.h"
#include "src/base/store_name.h"

const struct ljp_setting_info ljp_settings_info[LJP_SETTING_COUNT] = {
#define LJP_X(id, flag, part, name, kind, ...)                                 \
  {flag, LJP_PART_##part, name, LJP_KIND_##kind, __VA_ARGS__},
    LJP_SETTING_VALUES(LJP_X)
#undef LJP_X
};

/* -- Values ----------------------------------------------------------------- */

static bool setting_is_digit(char c)
{
  return c >= '0' && c <= '9';
}

/* A decimal number: digits, a fraction, an exponent of at most two digits.
** Returns what follows; NULL: it is none. strtod() would ask the locale for the
** point. */
static const char *setting_number(const char *text, double *out)
{
  double n = 0, place = 1;
  bool any = false;
  for (; setting_is_digit(*text); text++, any = true)
    n = n * 10 + (*text - '0');
  if (*text == '.')
    for (text++; setting_is_digit(*text); text++, any = true)
      n += (*text - '0') * (place /= 10);
  if (!any)
    return NULL;
  const char *e = text + 1 + (*text && (text[1] == '-' || text[1] == '+'));
  if ((*text | 0x20) == 'e' && setting_is_digit(*e)) {
    bool down = text[1] == '-';
    int power = 0;
    for (text = e; setting_is_digit(*text); text++)
      power = power < 100 ? power * 10 + (*text - '0') : power;
    for (; power > 0; power--)
      n = down ? n / 10 : n * 10;
  }
  *out = n;
  return text;
}

static bool setting_is_number(const char *text, double low, double high)
{
  double n;
  const char *end = setting_number(text, &n);
  return end && !*end && n >= low && n <= high;
}

double ljp_setting_bytes(const char *text)
{
  static const char units[] = "kmg";
  double number;
  const char *end = setting_number(text, &number);
  if (!end)
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

double ljp_setting_seconds(const char *text)
{
  static const struct {
    const char *name;
    double seconds;
  } units[] = {{"", 1},   {"s", 1},    {"ms", 1e-3},
               {"m", 60}, {"h", 3600}, {"d", 86400}};
  double number;
  const char *end = setting_number(text, &number);
  for (size_t i = 0; end && i < sizeof units / sizeof *units; i++)
    if (strcmp(end, units[i].name) == 0)
      return number * units[i].seconds;
  return -1;
}

static bool setting_is_size(const struct ljp_setting_info *o, const char *text)
{
  double bytes = ljp_setting_bytes(text);
  return bytes >= o->low && bytes <= o->high &&
         bytes == (double)(uint64_t)bytes;
}

static bool setting_is_word(const char *text, const char *words)
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

bool ljp_setting_accepts(enum ljp_setting setting, const char *text)
{
  const struct ljp_setting_info *o = &ljp_settings_info[setting];
  switch (o->kind) {
  case LJP_KIND_NUMBER:
    return setting_is_number(text, o->low, o->high);
  case LJP_KIND_WHOLE:
    return !text[strspn(text, "0123456789")] &&
           setting_is_number(text, o->low, o->high);
  case LJP_KIND_SIZE:
    return setting_is_size(o, text);
  case LJP_KIND_TIME:
    return ljp_setting_seconds(text) >= o->low &&
           ljp_setting_seconds(text) <= o->high;
  case LJP_KIND_WORD:
    return setting_is_word(text, o->words);
  case LJP_KIND_SIGNAL:
    return ljp_signal_usable(ljp_signal_named(text));
  case LJP_KIND_SERVICE:
    return ljp_store_service_valid(text);
  }
  return false;
}

/* -- Together --------------------------------------------------------------- */

static void settings_default(struct ljp_settings *set, enum ljp_setting setting,
                             const char *value)
{
  if (!set->value[setting])
    set->value[setting] = value;
}

/* The one preset, "production": 100 samples a second, at most 1 % of a thread's
** time for them, whatever happens; a sample of memory in 512 KiB, at
** most 100 a second; and a writer that
** wakes once a second (doc/guide/always-on.md). The kernel's own ticks are often
** enough for that, and cost nothing when a thread waits and goes on. A perf event
** would cost some microseconds each time. */
void ljp_settings_apply_preset(struct ljp_settings *set)
{
  if (!set->value[LJP_SETTING_PRESET])
    return;
  if (!set->no_cpu) {
    settings_default(set, LJP_SETTING_INTERVAL, "10");
    settings_default(set, LJP_SETTING_TIMER, "tick");
    settings_default(set, LJP_SETTING_OVERHEAD, "1");
  }
  set->memory = true;
  if (!set->every) {
    settings_default(set, LJP_SETTING_SAMPLE, "512k");
    settings_default(set, LJP_SETTING_MAX_SAMPLES, "100");
  }
  settings_default(set, LJP_SETTING_FLUSH, "1000");
}

/* The first setting that concerns a part that is not recorded; NULL: none. */
static const char *settings_vain(const struct ljp_settings *set,
                                 enum ljp_setting_part part)
{
  for (int i = 0; i < LJP_SETTING_COUNT; i++)
    if (set->value[i] && ljp_settings_info[i].part == part)
      return ljp_settings_info[i].flag + 2;
  if (part == LJP_PART_CPU)
    return NULL;
  return set->every      ? "every"
         : set->native   ? "native"
         : set->snapshot ? "snapshot"
                         : NULL;
}

#define SAY(...) (snprintf(out, LJP_SETTINGS_TEXT_BYTES, __VA_ARGS__), out)

/* Of settings that make files. */
static const char *settings_conflict_files(const struct ljp_settings *set,
                                           const char *d,
                                           char out[LJP_SETTINGS_TEXT_BYTES])
{
  const char *const *v = set->value;
  bool rotates = v[LJP_SETTING_ROTATE_BYTES] || v[LJP_SETTING_ROTATE_SECONDS];
  if (v[LJP_SETTING_CONTINUOUS] && v[LJP_SETTING_ROTATE_SECONDS])
    return SAY("%scontinuous and %srotate-seconds contradict each other", d, d);
  if (v[LJP_SETTING_KEEP] && ljp_settings_store(set))
    return SAY("%skeep counts the files of one process, so it cannot be "
               "combined with %s%s: %sring limits those of all",
               d, d,
               v[LJP_SETTING_RING]         ? "ring"
               : v[LJP_SETTING_CONTINUOUS] ? "continuous"
                                           : "service",
               d);
  if (v[LJP_SETTING_KEEP] && !rotates)
    return SAY("%skeep needs %srotate-bytes or %srotate-seconds", d, d, d);
  return NULL;
}

const char *ljp_settings_conflict(const struct ljp_settings *set,
                                  const char *dash,
                                  char out[LJP_SETTINGS_TEXT_BYTES])
{
  const char *vain;
  if (set->value[LJP_SETTING_SAMPLE] && set->every)
    return SAY("%ssample and %severy contradict each other", dash, dash);
  if (set->value[LJP_SETTING_MAX_SAMPLES] && set->every)
    return SAY("%smax-samples and %severy contradict each other", dash, dash);
  if (!set->memory && (vain = settings_vain(set, LJP_PART_MEMORY)) != NULL)
    return SAY("%s%s needs %smemory", dash, vain, dash);
  if (!set->memory && set->no_cpu)
    return SAY("%s without %smemory records nothing",
               *dash ? "--no-cpu" : "cpu=no", dash);
  if (set->no_cpu && (vain = settings_vain(set, LJP_PART_CPU)) != NULL)
    return SAY("%s%s configures CPU samples, but %s is given", dash, vain,
               *dash ? "--no-cpu" : "cpu=no");
  return settings_conflict_files(set, dash, out);
}
#undef SAY

/* -- The request ------------------------------------------------------------ */

#define PUT(...)                                                               \
  at += (size_t)snprintf(at < room ? out + at : NULL,                          \
                         at < room ? room - at : 0, __VA_ARGS__)

/* A value without its unit. Thousandths, since snprintf() would ask the locale
** for the point. */
static const char *settings_plain(const struct ljp_setting_info *o,
                                  const char *value, char room[32])
{
  if (o->kind != LJP_KIND_TIME && o->kind != LJP_KIND_SIZE)
    return value;
  if (o->kind == LJP_KIND_SIZE) {
    snprintf(room, 32, "%llu", (unsigned long long)ljp_setting_bytes(value));
  } else {
    unsigned long long ms =
        (unsigned long long)(ljp_setting_seconds(value) * 1000 + 0.5);
    snprintf(room, 32, "%llu.%03llu", ms / 1000, ms % 1000);
  }
  return room;
}

size_t ljp_settings_put(const struct ljp_settings *set, char *out, size_t room,
                        size_t at)
{
  char plain[32];
  if (set->sync)
    PUT("sync=true;");
  if (set->no_cpu)
    PUT("cpu=false;");
  if (set->memory && set->every)
    PUT("memory.every=true;");
  else if (set->memory && !set->value[LJP_SETTING_SAMPLE])
    PUT("memory.sample=524288;");
  if (set->memory && set->native)
    PUT("memory.native=true;");
  if (set->snapshot && !set->value[LJP_SETTING_SNAPSHOT])
    PUT("memory.snapshot=true;");
  for (int i = 0; i < LJP_SETTING_COUNT; i++) {
    const struct ljp_setting_info *o = &ljp_settings_info[i];
    if (!set->value[i] || !*o->name)
      continue;
    const char *value = settings_plain(o, set->value[i], plain);
    if (o->part == LJP_PART_SESSION)
      PUT("%s=%s;", o->name, value);
    if ((o->part == LJP_PART_CPU || o->part == LJP_PART_BOTH) && !set->no_cpu)
      PUT("cpu.%s=%s;", o->name, value);
    if ((o->part == LJP_PART_MEMORY || o->part == LJP_PART_BOTH) && set->memory)
      PUT("memory.%s=%s;", o->name, value);
  }
  return at;
}
#undef PUT
