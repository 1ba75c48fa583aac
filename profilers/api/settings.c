/*
** See settings.h.
*/
#include "profilers/api/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/nearest.h"
#include "src/base/open_file.h"
#include "src/base/settings.h"
#include "src/base/store_name.h"

enum { FILE_BYTES = 64 << 10, REQUEST_BYTES = PATH_MAX + 1024, OUTPUT = -1 };

/* Settings without a value: "name" or "name=yes", "name=no". */
#define SETTINGS_SWITCHES(_)                                                   \
  _(memory) _(every) _(native) _(snapshot) _(sync) _(cpu)
enum settings_switch {
#define LJP_X(name) SWITCH_##name,
  SETTINGS_SWITCHES(LJP_X)
#undef LJP_X
      SWITCHES
};
static const char *const settings_switches[] = {
#define LJP_X(name) #name,
    SETTINGS_SWITCHES(LJP_X)
#undef LJP_X
};

struct settings_reader {
  struct ljp_settings set;
  const char *output;
  bool given[SWITCHES], on[SWITCHES];
  const char *file; /* NULL: the variable itself. */
  unsigned line;
  char service[LJP_STORE_SERVICE_BYTES];
  char text[REQUEST_BYTES]; /* The request, or what is wrong. */
};

bool ljp_settings_is_request(const char *text)
{
  static const char *const first[] = {"preload=", "told=", "pid="};
  for (size_t i = 0; i < sizeof first / sizeof *first; i++)
    if (strncmp(text, first[i], strlen(first[i])) == 0)
      return true;
  return false;
}

/* Notes the first thing that is wrong, and where. Returns false. */
__attribute__((format(printf, 2, 3))) static bool
settings_wrong(struct settings_reader *r, const char *format, ...)
{
  va_list args;
  int n = r->file && r->line
              ? snprintf(r->text, sizeof r->text, "%s:%u: ", r->file, r->line)
              : snprintf(r->text, sizeof r->text,
                         "%s: ", r->file ? r->file : "LJPROF_RECORD");
  size_t at = n < 0                        ? 0
              : (size_t)n < sizeof r->text ? (size_t)n
                                           : sizeof r->text - 1;
  va_start(args, format);
  /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is initialized. */
  vsnprintf(r->text + at, sizeof r->text - at, format, args);
  va_end(args);
  for (char *p = r->text; *p; p++)
    if (*p > 0 && (*p < ' ' || *p > '~'))
      *p = '?';
  return false;
}

/* -- One setting ------------------------------------------------------------ */

/* Makes sense only where somebody waits for the end. */
static bool settings_excluded(int setting)
{
  return setting == LJP_SETTING_REPORT;
}

static const char *settings_name(int setting)
{
  return ljp_settings_info[setting].flag + 2;
}

static bool settings_unknown(struct settings_reader *r, const char *name)
{
  const char *best = "output";
  for (int i = 0; i < LJP_SETTING_COUNT; i++)
    if (!settings_excluded(i) && ljp_nearest_distance(name, settings_name(i)) <
                                     ljp_nearest_distance(name, best))
      best = settings_name(i);
  for (int i = 0; i < SWITCHES; i++)
    if (ljp_nearest_distance(name, settings_switches[i]) <
        ljp_nearest_distance(name, best))
      best = settings_switches[i];
  if (ljp_nearest_distance(name, best) <= ljp_nearest_limit(name))
    return settings_wrong(r, "there is no setting '%.100s'; did you mean '%s'?",
                          name, best);
  return settings_wrong(r,
                        "there is no setting '%.100s' (settings are options of "
                        "ljprof record, without '--')",
                        name);
}

static bool settings_take_switch(struct settings_reader *r, int i,
                                 const char *value)
{
  static const char *const yes[] = {"yes", "true", "on", "1"};
  static const char *const no[] = {"no", "false", "off", "0"};
  if (r->given[i])
    return settings_wrong(r, "%s is given twice", settings_switches[i]);
  r->given[i] = true;
  r->on[i] = !value;
  for (size_t k = 0; value && k < sizeof yes / sizeof *yes; k++) {
    if (strcmp(value, yes[k]) == 0)
      return r->on[i] = true;
    if (strcmp(value, no[k]) == 0)
      return true;
  }
  return value ? settings_wrong(r, "%s is '%.100s', but must be yes or no",
                                settings_switches[i], value)
               : true;
}

static bool settings_take_value(struct settings_reader *r, const char *name,
                                const char **to, int setting, const char *value)
{
  if (*to)
    return settings_wrong(r, "%s is given twice", name);
  if (!value || !*value)
    return settings_wrong(r, "%s has no value", name);
  if (setting != OUTPUT &&
      !ljp_setting_accepts((enum ljp_setting)setting, value))
    return settings_wrong(r, "%s is '%.100s', but must be %s", name, value,
                          ljp_settings_info[setting].wants);
  *to = value;
  return true;
}

static bool settings_take(struct settings_reader *r, const char *name,
                          const char *value)
{
  if (strcmp(name, "output") == 0)
    return settings_take_value(r, name, &r->output, OUTPUT, value);
  for (int i = 0; i < SWITCHES; i++)
    if (strcmp(name, settings_switches[i]) == 0)
      return settings_take_switch(r, i, value);
  for (int i = 0; i < LJP_SETTING_COUNT; i++)
    if (!settings_excluded(i) && strcmp(name, settings_name(i)) == 0)
      return settings_take_value(r, name, &r->set.value[i], i, value);
  return settings_unknown(r, name);
}

/* -- All of them ------------------------------------------------------------ */

static char *settings_trim(char *text)
{
  text += strspn(text, " \t\r");
  size_t len = strlen(text);
  while (len && strchr(" \t\r", text[len - 1]))
    text[--len] = '\0';
  return text;
}

/* The reader keeps pointers into the text. */
static bool settings_parse(struct settings_reader *r, char *text)
{
  for (char *next = text; next;) {
    char *item = next, *end = item + strcspn(item, r->file ? "\n" : ";");
    next = *end ? end + 1 : NULL;
    *end = '\0';
    r->line++;
    item = settings_trim(item);
    if (!*item || (r->file && *item == '#'))
      continue;
    char *value = strchr(item, '=');
    if (value) {
      *value = '\0';
      value = settings_trim(value + 1);
    }
    if (!settings_take(r, settings_trim(item), value))
      return false;
  }
  r->line = 0;
  return true;
}

/* Reads a whole file into text, which has FILE_BYTES + 1. */
static bool settings_read_file(struct settings_reader *r, char *text)
{
  struct stat st;
  size_t len = 0;
  ssize_t n = 1;
  int fd = ljp_fd_not_standard(
      open(r->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd < 0)
    return settings_wrong(r, "%s", strerror(errno));
  if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
    close(fd);
    return settings_wrong(r, "this is not a regular file");
  }
  while (len <= FILE_BYTES && n > 0) {
    n = read(fd, text + len, FILE_BYTES + 1 - len);
    len += n > 0 ? (size_t)n : 0;
    if (n < 0 && errno == EINTR)
      n = 1;
  }
  int error = errno;
  close(fd);
  if (n < 0)
    return settings_wrong(r, "%s", strerror(error));
  if (len > FILE_BYTES)
    return settings_wrong(r, "the file is larger than 64 KiB");
  if (memchr(text, '\0', len))
    return settings_wrong(r, "the file has a NUL byte: it is not text");
  text[len] = '\0';
  return true;
}

/* The name of the program's file. */
static const char *settings_service(struct settings_reader *r)
{
  char *path = r->text; /* Free until the request is made. */
  ssize_t n = readlink("/proc/self/exe", path, sizeof r->text - 1);
  path[n > 0 ? n : 0] = '\0';
  const char *slash = strrchr(path, '/');
  ljp_store_service_make(r->service, slash ? slash + 1 : path);
  return r->service;
}

static bool settings_complete(struct settings_reader *r)
{
  char why[LJP_SETTINGS_TEXT_BYTES];
  struct ljp_settings *set = &r->set;
  set->memory = r->on[SWITCH_memory];
  set->every = r->on[SWITCH_every];
  set->native = r->on[SWITCH_native];
  set->snapshot = r->on[SWITCH_snapshot];
  set->sync = r->on[SWITCH_sync];
  set->no_cpu = r->given[SWITCH_cpu] && !r->on[SWITCH_cpu];
  if (!r->output)
    return settings_wrong(r, "output is missing: the folder for the files");
  if (set->value[LJP_SETTING_PRESET] && r->given[SWITCH_memory] && !set->memory)
    return settings_wrong(r, "the preset records memory, but memory is 'no'");
  ljp_settings_apply_preset(set);
  if (!set->value[LJP_SETTING_SERVICE])
    set->value[LJP_SETTING_SERVICE] = settings_service(r);
  if (ljp_settings_conflict(set, "", why))
    return settings_wrong(r, "%s", why);
  return true;
}

static bool settings_write(struct settings_reader *r)
{
  char *out = r->text;
  size_t room = sizeof r->text;
  const char *duration = r->set.value[LJP_SETTING_DURATION];
  unsigned long long until =
      duration ? ljp_clock_ns() +
                     (unsigned long long)(ljp_setting_seconds(duration) * 1e9)
               : 0;
  size_t at =
      (size_t)snprintf(out, room, "children=true;fork=follow;until=%llu;%s",
                       until, r->set.memory ? "" : "memory=false;");
  at = ljp_settings_put(&r->set, out, room, at);
  if (at < room)
    at += (size_t)snprintf(out + at, room - at, "path=%s", r->output);
  return at < room || settings_wrong(r, "the settings are too long");
}

char *ljp_settings_request(const char *text, bool *wrong)
{
  struct settings_reader *r = calloc(1, sizeof *r);
  size_t len = strlen(text);
  char *copy = malloc((len > FILE_BYTES ? len : FILE_BYTES) + 2);
  char *result = NULL;
  *wrong = false;
  if (r && copy) {
    memcpy(copy, text, len + 1);
    if (!strchr(text, '='))
      r->file = text;
    *wrong = (r->file && !settings_read_file(r, copy)) ||
             !settings_parse(r, copy) || !settings_complete(r) ||
             !settings_write(r);
    result = strdup(r->text);
  }
  free(copy);
  free(r);
  return result;
}
