/*
** Reports what was recorded once the program has ended: the file, its segments,
** and the files of child processes and of programs executed later.
*/
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "parsers/stream/balance.h"
#include "parsers/stream/names.h"
#include "tools/record/record.h"
#include "tools/shared/command.h"

bool ljp_record_replaced(const struct ljp_record_plan *plan)
{
  struct stat now;
  return !stat(plan->path, &now) &&
         (now.st_ino != plan->before.st_ino ||
          now.st_mtim.tv_sec != plan->before.st_mtim.tv_sec ||
          now.st_mtim.tv_nsec != plan->before.st_mtim.tv_nsec);
}

struct sums {
  uint64_t samples, memory, lost;
  unsigned errors; /* That the sessions met. */
  struct ljp_balance balance;
  bool unclean, recording;
};

enum { MAX_ERRORS = 8 };

static void outcome_error(struct sums *sums, const char *path, const char *text,
                          size_t len)
{
  if (sums->errors++ < MAX_ERRORS)
    ljp_command_error("record", "%s: %.*s", path, (int)len, text);
}

/* path: of a whole session, or of one of its file segments. session: its
** number. */
static bool outcome_add(struct sums *sums, const char *path, uint32_t session)
{
  struct ljp_balance *balance = &sums->balance;
  static struct ljp_reader reader;
  const struct ljp_item *item;
  enum ljp_status status = ljp_reader_open(&reader, path);
  while (!status && !(status = ljp_reader_next(&reader, &item)) &&
         item->what != LJP_ITEM_FINISH &&
         !(status = ljp_balance_take(balance, &reader.model, item, session)))
    if (item->what == LJP_REC_NOTE && item->u.note.severity == LJP_NOTE_ERROR)
      outcome_error(sums, path, (const char *)item->u.note.text.data,
                    item->u.note.text.len);
  if (!status && reader.finish.status) {
    const char *why = ljp_name_shown(LJP_SHOW_STATUS, reader.finish.status);
    const char *error = ljp_errno_text((int)reader.finish.error);
    char text[256];
    int n =
        snprintf(text, sizeof text, "the session was ended by an error: %s%s%s",
                 why ? why : "unknown", reader.finish.error ? ": " : "",
                 reader.finish.error ? (error ? error : "unknown") : "");
    outcome_error(sums, path, text, (size_t)n);
  }
  if (!status)
    status = ljp_balance_finish(balance, &reader.model, session);
  if (status)
    ljp_command_error("record", "%s: %s", path,
                      *reader.error ? reader.error : ljp_status_text(status));
  sums->samples += reader.tally.read[LJP_REC_SAMPLES];
  sums->memory += reader.tally.read[LJP_REC_MEM];
  for (size_t i = 0; i < reader.tally.loss_count; i++)
    if (!reader.tally.losses[i].overrun)
      sums->lost += reader.tally.losses[i].count;
  const struct ljp_finish *f = &reader.finish;
  sums->unclean |= (!f->clean && !f->recording) || f->gaps;
  sums->recording |= f->recording;
  ljp_reader_fini(&reader);
  return !status;
}

/* Says on one line what was recorded, then what is missing. who: begins each
** line; before, behind: of the path. */
static void outcome_tell(const struct sums *sums, const char *who,
                         const char *before, const char *path,
                         const char *behind)
{
  char missing[LJP_BALANCE_TIME_BYTES + 32] = "";
  char text[LJP_BALANCE_TEXT_BYTES];
  uint64_t ns = ljp_balance_missing(&sums->balance);
  if (ns)
    snprintf(missing, sizeof missing, ", %s not sampled",
             ljp_balance_time(ns, text));
  ljp_command_error("record",
                    "%s%" PRIu64 " samples, %" PRIu64 " memory events, %" PRIu64
                    " lost%s%s: %s%s%s",
                    who, sums->samples, sums->memory, sums->lost, missing,
                    sums->unclean     ? ", not closed cleanly"
                    : sums->recording ? ", still recording"
                                      : "",
                    before, ljp_record_shown(path), behind);
  for (unsigned i = 0; i < 2 * LJP_UNSAMPLED_COUNT; i++) {
    unsigned kind = i % 2 ? LJP_PRODUCER_WALL : LJP_PRODUCER_CPU;
    if (ljp_balance_matters(&sums->balance, kind, i / 2))
      ljp_command_note("record", "%s%s", who,
                       ljp_balance_text(&sums->balance, kind, i / 2, text));
  }
}

/* Reads the files of child processes or, if executed, of further sessions of
** the same process numbers: programs that were executed, and processes in other
** namespaces. Returns the number of sessions. */
static size_t outcome_own_files(struct ljp_record_plan *plan, bool executed,
                                unsigned *errors)
{
  glob_t found;
  struct sums sums = {0};
  char who[64];
  size_t files = ljp_record_files(
      plan, executed ? LJP_NAME_EXECUTED : LJP_NAME_CHILD, &found);
  uint32_t sessions = 0;
  if (!files)
    return 0;
  ljp_balance_init(&sums.balance);
  for (size_t i = 0; i < files; i++) {
    /* The file segments of a session follow each other. */
    size_t stem = ljp_record_stem(found.gl_pathv[i]);
    if (!i || stem != ljp_record_stem(found.gl_pathv[i - 1]) ||
        memcmp(found.gl_pathv[i], found.gl_pathv[i - 1], stem) != 0)
      sessions++;
    if (!outcome_add(&sums, found.gl_pathv[i], sessions))
      sums.errors++;
  }
  globfree(&found);
  const char *what = executed ? "more program" : "child process";
  snprintf(who, sizeof who, "%u %s%s: ", sessions, what,
           sessions == 1 ? ""
           : executed    ? "s"
                         : "es");
  outcome_tell(&sums, who, "", plan->path, executed ? ".PID-N" : ".PID");
  *errors += sums.errors;
  plan->events += sums.samples + sums.memory;
  ljp_balance_fini(&sums.balance);
  return sessions;
}

static bool outcome_embed_one(char *path)
{
  char *again[] = {"embed", path, NULL};
  return ljp_command_embed(2, again) == LJP_EXIT_OK;
}

/* first: there is the file itself. */
static bool outcome_embed(struct ljp_record_plan *plan, bool first)
{
  static const enum ljp_record_name kinds[] = {LJP_NAME_CHILD,
                                               LJP_NAME_EXECUTED};
  glob_t found;
  bool done = !first || outcome_embed_one(plan->path);
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    size_t files = ljp_record_files(plan, kinds[k], &found);
    for (size_t i = 0; i < files; i++)
      done &= outcome_embed_one(found.gl_pathv[i]);
    if (files)
      globfree(&found);
  }
  return done;
}

static bool outcome_take_stored(void *ctx, const char *path, uint32_t session)
{
  return outcome_add(ctx, path, session);
}

/* Of what is left in a store. What was not sampled is not said: the files in
** which the samples are may have gone. */
static bool outcome_store(struct ljp_record_plan *plan,
                          const struct ljp_told *told)
{
  struct sums sums = {0};
  struct ljp_stored found;
  char text[64];
  ljp_balance_init(&sums.balance);
  bool done = ljp_record_stored(plan, outcome_take_stored, &sums, &found);
  ljp_balance_fini(&sums.balance);
  if (!found.files) {
    ljp_record_tell_nothing(plan, told);
    return false;
  }
  ljp_record_tell_refusals(told);
  plan->events = sums.samples + sums.memory;
  snprintf(text, sizeof text, "%zu file%s of %u process%s in ", found.files,
           found.files == 1 ? "" : "s", found.processes,
           found.processes == 1 ? "" : "es");
  ljp_command_error("record",
                    "%" PRIu64 " samples, %" PRIu64 " memory events, %" PRIu64
                    " lost%s: %s%s",
                    sums.samples, sums.memory, sums.lost,
                    sums.recording ? ", still recording" : "", text,
                    ljp_record_shown(plan->path));
  return done && !sums.errors && !told->refusals;
}

static bool outcome_files(struct ljp_record_plan *plan,
                          const struct ljp_told *told)
{
  glob_t found;
  struct sums sums = {0};
  struct stat now;
  size_t own = outcome_own_files(plan, false, &sums.errors) +
               outcome_own_files(plan, true, &sums.errors);
  if (!stat(plan->path, &now) && !S_ISREG(now.st_mode)) {
    /* Who reads a pipe has it all; to open it again would wait for ever. */
    ljp_command_note("record",
                     "%s is not a regular file: what it got is not counted",
                     plan->path);
    ljp_record_tell_refusals(told);
    return !sums.errors && !told->refusals;
  }
  size_t segments = ljp_record_rotates(plan)
                        ? ljp_record_files(plan, LJP_NAME_SEGMENT, &found)
                        : 0;
  bool first =
      ljp_record_replaced(plan); /* --keep may have removed the first file. */
  if (!first && !segments) {
    if (!own || plan->pid)
      ljp_record_tell_nothing(plan, told);
    else
      ljp_record_tell_refusals(told);
    bool embedded = !own || !plan->embed || outcome_embed(plan, false);
    return own && !plan->pid && embedded && !sums.errors && !told->refusals;
  }
  ljp_record_drop_segments(plan);
  ljp_record_tell_refusals(told);
  ljp_balance_init(&sums.balance);
  bool done = !first || outcome_add(&sums, plan->path, 0);
  for (size_t i = 0; i < segments; i++)
    done &= outcome_add(&sums, found.gl_pathv[i], 0);
  plan->events += sums.samples + sums.memory;
  if (done) {
    char before[64] = "";
    if (segments)
      snprintf(before, sizeof before, "%s%zu segments of ",
               first ? "the first and " : "", segments);
    outcome_tell(&sums, "", before, plan->path, "");
  }
  ljp_balance_fini(&sums.balance);
  if (segments)
    globfree(&found);
  if (sums.errors > MAX_ERRORS)
    ljp_command_error("record", "%u more errors: see 'ljprof check'",
                      sums.errors - MAX_ERRORS);
  if (!done || !plan->embed)
    return done && !sums.errors && !told->refusals;
  return outcome_embed(plan, true) && !sums.errors && !told->refusals;
}

bool ljp_record_outcome(struct ljp_record_plan *plan)
{
  static struct ljp_told told;
  bool store = ljp_settings_store(&plan->set);
  if (!store)
    ljp_record_clean(plan);
  ljp_record_hear(plan, &told);
  bool recorded =
      store ? outcome_store(plan, &told) : outcome_files(plan, &told);
  const char *mode = plan->set.value[LJP_SETTING_MODE];
  /* Counters are no events. */
  plan->empty = recorded && !plan->events && !(mode && *mode == 'D');
  ljp_record_next(plan, &told);
  return recorded;
}
