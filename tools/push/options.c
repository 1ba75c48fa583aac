/*
** The options of ljprof push.
*/
#include "tools/push/options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/base/status.h"
#include "tools/shared/text.h"

static const char options_help[] =
    "Usage: ljprof push --to ENGINE URL [OPTION]... FILE...\n"
    "       ljprof push --to ENGINE URL [OPTION]... --follow DIR\n"
    "Sends profiles to a server that stores the profiles of many machines.\n"
    "\n"
    "  --to ENGINE      pyroscope, parca, or otlp (any that takes OTLP "
    "profiles)\n"
    "  URL              http://HOST:PORT or https://HOST; the path of the\n"
    "                   engine's API is added\n"
    "  --api API        of Pyroscope: push, or ingest (its older API) "
    "(push)\n"
    "  --follow DIR     send each file of DIR when it is complete, until a "
    "signal\n"
    "                   comes\n"
    "  --look SECONDS   look into DIR every SECONDS (10)\n"
    "\n"
    "Labels:\n"
    "  --service NAME   the service (default: as the files are named, or the "
    "program)\n"
    "  --host NAME      the machine (default: its own name)\n"
    "  --worker NAME    the process (default: its number)\n"
    "  --service-version TEXT\n"
    "                   the version of the service (default: no such label)\n"
    "  --set KEY=VALUE  one more label; up to 16\n"
    "  --all-labels     samples get thread, vm, state and type, too, not only "
    "the\n"
    "                   labels of the program: many more series\n"
    "\n"
    "What is sent:\n"
    "  --lua            without machine code, as in reports (default: all "
    "frames)\n"
    "  --no-symbols     do not look up names of machine code\n"
    "\n"
    "The server:\n"
    "  --token-file F   send the token in F ('Authorization: Bearer')\n"
    "  --tenant NAME    send this tenant ('X-Scope-OrgID')\n"
    "  --ca FILE        trust these certificates instead of the system's\n"
    "  --timeout SECONDS\n"
    "                   the time that one request may take (30)\n"
    "  --retry SECONDS  the first wait before another attempt (1); later ones\n"
    "                   double, up to a minute\n"
    "  --give-up SECONDS\n"
    "                   FILE...: stop trying after this time (60)\n"
    "  --aside SECONDS  let others go before a request that the server has "
    "answered with\n"
    "                   errors for this time (300)\n"
    "  --spool DIR      keep what waits in DIR, and what was sent in its "
    "journal,\n"
    "                   so that a file is sent once (--follow: DIR/.push)\n"
    "  --budget SIZE    the most that may wait there (256M); beyond it, the "
    "oldest\n"
    "                   is dropped\n"
    "  --in-doubt send|skip\n"
    "                   if a server may have a request but did not say so: "
    "send\n"
    "                   it again, or do not (send)\n"
    "  --help           show this help\n"
    "\n"
    "Exit code: 0 all was sent, 1 something was not, 2 wrong usage.\n";

static int options_wrong(const char *option, const char *value,
                         const char *wanted)
{
  ljp_command_error("push", "%s '%s': %s expected", option, value, wanted);
  return LJP_EXIT_USAGE;
}

/* Seconds with a fraction, at least a millisecond, at most a day. */
static int options_seconds(const char *option, const char *text, uint64_t *ms)
{
  char *end;
  if (!text)
    return -1;
  double seconds = strtod(text, &end);
  if (end == text || *end || !isfinite(seconds) || seconds < 0.001 ||
      seconds > 86400 || strchr(text, 'x') || strchr(text, 'X'))
    return options_wrong(option, text, "a time in seconds, 0.001 to 86400,");
  *ms = (uint64_t)(seconds * 1000 + 0.5);
  return -1;
}

static int options_size(const char *option, const char *text, uint64_t *bytes)
{
  static const char units[] = "KMGT";
  char *end;
  if (!text)
    return -1;
  uint64_t n = strtoull(text, &end, 10);
  const char *unit = *end ? strchr(units, *end) : NULL;
  unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
  if (*text < '0' || *text > '9' || (*end && (!unit || end[1])) || !n ||
      n > UINT64_C(1) << (50 - shift))
    return options_wrong(option, text, "a size such as 500M");
  *bytes = n << shift;
  return -1;
}

static int options_engine(const char *to, const char *api,
                          enum ljp_engine *engine)
{
  static const char *const names[] = {
#define LJP_X(name, text, path, type) text,
      LJP_ENGINE_LIST(LJP_X)
#undef LJP_X
  };
  unsigned e = 0;
  if (!to) {
    ljp_command_error("push",
                      "no engine given (--to pyroscope, parca or otlp)");
    return LJP_EXIT_USAGE;
  }
  while (e < LJP_ENGINE_INGEST && strcmp(to, names[e]) != 0)
    e++;
  if (e == LJP_ENGINE_INGEST)
    return options_wrong("--to", to, "pyroscope, parca or otlp");
  if (api && e != LJP_ENGINE_PYROSCOPE) {
    ljp_command_error("push", "--api is for --to pyroscope");
    return LJP_EXIT_USAGE;
  }
  if (api && strcmp(api, "push") != 0 && strcmp(api, "ingest") != 0)
    return options_wrong("--api", api, "push or ingest");
  if (api && strcmp(api, "ingest") == 0)
    e = LJP_ENGINE_INGEST;
  *engine = (enum ljp_engine)e;
  return -1;
}

static bool options_is_plain(const char *text)
{
  for (const char *c = text; *c; c++)
    if (*c < ' ' || *c > '~')
      return false;
  return *text != '\0';
}

/* Words and options that do not go together. */
static int options_check(struct ljp_push_command *c, unsigned words,
                         const char *look, const char *give_up)
{
  if (!words) {
    ljp_command_error("push", "no URL given (see ljprof push --help)");
    return LJP_EXIT_USAGE;
  }
  c->url = c->words[0];
  c->files = c->words + 1;
  c->file_count = words - 1;
  if (c->follow && c->file_count) {
    ljp_command_error("push", "'%s': --follow takes no files", c->files[0]);
    return LJP_EXIT_USAGE;
  }
  if (!c->follow && !c->file_count) {
    ljp_command_error("push", "no files given, and no --follow DIR");
    return LJP_EXIT_USAGE;
  }
  if (look && !c->follow) {
    ljp_command_error("push", "--look is for --follow");
    return LJP_EXIT_USAGE;
  }
  if (give_up && c->follow) {
    ljp_command_error("push",
                      "--give-up is for files: --follow never gives up");
    return LJP_EXIT_USAGE;
  }
  return -1;
}

int ljp_push_options(int argc, char **argv, struct ljp_push *push,
                     struct ljp_push_command *c)
{
  struct ljp_push_options *o = &push->options;
  const char *to = NULL, *api = NULL, *timeout = NULL, *retry = NULL,
             *give_up = NULL;
  const char *budget = NULL, *look = NULL, *doubt = NULL, *aside = NULL;
  unsigned words = 0;
  uint64_t timeout_ms = 30000;
  const struct ljp_flag flags[] = {
      {"--to", NULL, &to},
      {"--api", NULL, &api},
      {"--follow", NULL, &c->follow},
      {"--look", NULL, &look},
      {"--service", NULL, &o->service},
      {"--host", NULL, &o->host},
      {"--worker", NULL, &o->worker},
      {"--service-version", NULL, &o->version},
      {"--set+", NULL, o->set},
      {"--all-labels", &o->all_labels, NULL},
      {"--lua", &o->lua, NULL},
      {"--no-symbols", &o->no_symbols, NULL},
      {"--token-file", NULL, &push->http.token_file},
      {"--tenant", NULL, &push->http.tenant},
      {"--ca", NULL, &push->http.ca_file},
      {"--timeout", NULL, &timeout},
      {"--retry", NULL, &retry},
      {"--give-up", NULL, &give_up},
      {"--aside", NULL, &aside},
      {"--spool", NULL, &c->spool},
      {"--budget", NULL, &budget},
      {"--in-doubt", NULL, &doubt},
  };
  c->words = calloc((size_t)argc + 1, sizeof *c->words);
  if (!c->words) {
    ljp_command_error("push", "%s", ljp_status_text(LJP_ERR_MEM));
    return LJP_EXIT_FAILED;
  }
  c->budget = UINT64_C(256) << 20;
  c->look_ms = 10000;
  o->first_wait_ms = 1000;
  o->give_up_ms = 60000;
  o->aside_ms = 300000;
  int code = ljp_command_words("push", options_help, argc, argv, flags,
                               sizeof flags / sizeof *flags, c->words, &words);
  if (code < 0)
    code = options_engine(to, api, &o->engine);
  if (code < 0)
    code = options_check(c, words, look, give_up);
  if (code < 0)
    code = options_seconds("--timeout", timeout, &timeout_ms);
  if (code < 0)
    code = options_seconds("--retry", retry, &o->first_wait_ms);
  if (code < 0)
    code = options_seconds("--give-up", give_up, &o->give_up_ms);
  if (code < 0)
    code = options_seconds("--aside", aside, &o->aside_ms);
  if (code < 0)
    code = options_seconds("--look", look, &c->look_ms);
  if (code < 0)
    code = options_size("--budget", budget, &c->budget);
  if (code < 0 && doubt && strcmp(doubt, "send") != 0 &&
      strcmp(doubt, "skip") != 0)
    code = options_wrong("--in-doubt", doubt, "send or skip");
  if (code < 0 && push->http.tenant && !options_is_plain(push->http.tenant))
    code = options_wrong("--tenant", push->http.tenant, "plain ASCII text");
  if (code < 0)
    code = ljp_push_check_labels(o);
  o->skip_doubtful = doubt && strcmp(doubt, "skip") == 0;
  push->http.timeout_ms = (long)timeout_ms;
  push->http.engine = o->engine;
  push->http.url = c->url;
  return code;
}
