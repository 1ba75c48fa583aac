/*
** Notices: the sentences above every report, on everything that is missing
** from a profile. One thread a profile.
*/
#include "parsers/profile/pass.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "parsers/base/array.h"
#include "parsers/stream/names.h"

__attribute__((format(printf, 2, 3))) static enum ljp_status
notices_add(struct ljp_profile *p, const char *format, ...)
{
  struct ljp_profile_pass *pass = p->pass;
  char *text = NULL;
  va_list args;
  if (!ljp_array_reserve(&p->notices, p->notice_count, &pass->notice_room,
                         sizeof *p->notices))
    return LJP_ERR_MEM;
  va_start(args, format);
  int n = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (n < 0 || !(text = malloc((size_t)n + 1)))
    return LJP_ERR_MEM;
  va_start(args, format);
  vsnprintf(text, (size_t)n + 1, format, args);
  va_end(args);
  p->notices[p->notice_count++] = text;
  return LJP_OK;
}

/* The ending of a noun that n things have. */
static const char *notices_plural(uint64_t n)
{
  return n == 1 ? "" : "s";
}

static enum ljp_status notices_losses(struct ljp_profile *p)
{
  const struct ljp_profile_totals *t = &p->totals;
  enum ljp_status status = LJP_OK;
  for (unsigned i = 0; i <= LJP_LOSS_COUNT && !status; i++) {
    const char *why = ljp_name_loss(i);
    if (t->lost[i])
      status = notices_add(p, "%" PRIu64 " event%s lost before the file: %s",
                           t->lost[i], notices_plural(t->lost[i]),
                           why ? why : "for a reason that is not known");
  }
  if (!status && t->overruns)
    status =
        notices_add(p, "%" PRIu64 " timer expir%s merged into other samples",
                    t->overruns, t->overruns == 1 ? "y was" : "ies were");
  if (!status && t->throttled)
    status = notices_add(p,
                         "the sampler slowed itself down %" PRIu64
                         " time%s: handling took too large a share",
                         t->throttled, notices_plural(t->throttled));
  return status;
}

/* Time that no sample stands for. */
static enum ljp_status notices_unsampled(struct ljp_profile *p)
{
  const struct ljp_balance *b = &p->balance;
  const unsigned kinds[] = {LJP_PRODUCER_CPU, LJP_PRODUCER_WALL};
  char text[LJP_BALANCE_TEXT_BYTES];
  enum ljp_status status = LJP_OK;
  for (unsigned i = 0; i < 2 * LJP_UNSAMPLED_COUNT && !status; i++) {
    unsigned kind = kinds[i / LJP_UNSAMPLED_COUNT];
    unsigned why = i % LJP_UNSAMPLED_COUNT;
    if (ljp_balance_matters(b, kind, why))
      status = notices_add(p, "%s", ljp_balance_text(b, kind, why, text));
  }
  bool all = !p->options.thread && !p->pass->filters;
  if (!status && all && ljp_balance_off(b))
    status = notices_add(p, "%s", ljp_balance_off_text(b, text));
  return status;
}

static enum ljp_status notices_gaps(struct ljp_profile *p)
{
  const struct ljp_profile_totals *t = &p->totals;
  enum ljp_status status = LJP_OK;
  /* The stream begins with a later epoch. */
  bool begins_late =
      t->gaps == 1 && !t->gap_bytes && !t->missing_blocks && !t->missing_known;
  if (begins_late)
    status = notices_add(p, "the beginning of the recording is missing");
  else if (t->gaps)
    status = notices_add(
        p,
        "%" PRIu64 " gap%s of %" PRIu64 " bytes in the file, %s%" PRIu64
        " block%s missing, with %s%" PRIu64 " event%s",
        t->gaps, notices_plural(t->gaps), t->gap_bytes,
        t->missing_known ? "" : "at least ", t->missing_blocks,
        notices_plural(t->missing_blocks), t->missing_known ? "" : "at least ",
        t->swallowed, notices_plural(t->swallowed));
  if (!status && t->bad_records)
    status = notices_add(p, "%" PRIu64 " malformed record%s skipped",
                         t->bad_records, notices_plural(t->bad_records));
  if (!status && t->end_status)
    status = notices_add(p, "the session was ended by an error: %s%s%s",
                         ljp_status_text((enum ljp_status)t->end_status),
                         t->end_errno ? ": " : "",
                         t->end_errno ? strerror((int)t->end_errno) : "");
  if (!status && t->unclosed)
    status =
        notices_add(p, "the file was not closed: the program was killed, is "
                       "still running, or the end of the file is missing");
  if (!status && t->recording)
    status =
        notices_add(p, "still recording: this is what the file has so far");
  return status;
}

static enum ljp_status notices_stacks(struct ljp_profile *p)
{
  const struct ljp_profile_totals *t = &p->totals;
  enum ljp_status status = LJP_OK;
  for (unsigned i = 1; i < 256 && !status; i++) {
    const char *why = ljp_name_cut(i);
    if (t->cut[i] && why)
      status = notices_add(p, "%" PRIu64 " stack%s cut short: %s", t->cut[i],
                           t->cut[i] == 1 ? "" : "s", why);
    else if (t->cut[i])
      status = notices_add(p, "%" PRIu64 " stack%s cut short: reason %u",
                           t->cut[i], notices_plural(t->cut[i]), i);
  }
  if (!status && t->unnamed)
    status = notices_add(p,
                         "%" PRIu64
                         " function%s without a name: too many came and went "
                         "while the file could not be written",
                         t->unnamed, notices_plural(t->unnamed));
  if (!status && t->other_labels)
    status = notices_add(p,
                         "labels are (other): %" PRIu64
                         " time%s the program set labels beyond the %u "
                         "different sets that a process can have",
                         t->other_labels, notices_plural(t->other_labels),
                         LJP_MAX_LABEL_SETS);
  if (!status && t->lost_stacks)
    status = notices_add(
        p, "%" PRIu64 " event%s with a stack that was lost in a gap",
        t->lost_stacks, notices_plural(t->lost_stacks));
  if (!status && t->lost_labels)
    status = notices_add(
        p, "%" PRIu64 " event%s with labels that were lost in a gap",
        t->lost_labels, notices_plural(t->lost_labels));
  if (!status && t->too_many)
    status = notices_add(
        p,
        "%" PRIu64 " event%s counted without a stack: there are more "
        "stacks than this program keeps (%u)",
        t->too_many, notices_plural(t->too_many), LJP_PROFILE_MAX_NODES);
  if (!status && t->too_many_labels)
    status = notices_add(p,
                         "%" PRIu64 " event%s with labels that count as \"(too "
                         "many)\": there are more sets of labels than this "
                         "program keeps (%u)",
                         t->too_many_labels, notices_plural(t->too_many_labels),
                         LJP_PROFILE_MAX_LABELS);
  if (!status && t->dropped_events)
    status =
        notices_add(p,
                    "%" PRIu64 " event%s of GC, traces and marks left out: at "
                    "most %u of each are kept",
                    t->dropped_events, notices_plural(t->dropped_events),
                    LJP_PROFILE_MAX_EVENTS);
  if (!status && t->truncated)
    status =
        notices_add(p,
                    "%" PRIu64 " trace%s not wholly marked, %" PRIu64
                    " mark%s left out: inlined functions are less exact there",
                    t->truncated, t->truncated == 1 ? " is" : "s are",
                    t->marks_cut, t->marks_cut == 1 ? " was" : "s were");
  return status;
}

static enum ljp_status notices_memory(struct ljp_profile *p)
{
  const struct ljp_profile_totals *t = &p->totals;
  enum ljp_status status = LJP_OK;
  if (t->double_allocs)
    status =
        notices_add(p,
                    "%" PRIu64 " address%s given out again without a free in "
                    "between: taken for freed",
                    t->double_allocs, t->double_allocs == 1 ? "" : "es");
  bool all_held = t->held_sessions == t->later_sessions && !t->held_left_out;
  if (!status && p->has_memory && t->later && !all_held)
    status = notices_add(
        p,
        "this is file %" PRIu64
        " of a recording: what was allocated before it is not in it (ljprof "
        "merge puts the files together)",
        t->later + 1);
  if (!status && t->later && all_held && t->held_read < t->held_told)
    status = notices_add(p,
                         "%" PRIu64 " of %" PRIu64
                         " blocks that were alive when the file began could "
                         "not be read",
                         t->held_told - t->held_read, t->held_told);
  /* A VM that is recorded need not have told so yet in a part of a session. */
  if (!status && p->has_memory && p->growth.followed < p->growth.vms &&
      !t->continued)
    status = notices_add(p,
                         "memory of %" PRIu64 " of %" PRIu64
                         " VMs: what the others allocated "
                         "is not recorded",
                         p->growth.followed, p->growth.vms);
  if (!status && t->failed_allocs)
    status = notices_add(p, "%" PRIu64 " allocation%s failed: out of memory",
                         t->failed_allocs, notices_plural(t->failed_allocs));
  if (!status && p->options.since && !p->pass->since_seen)
    status =
        notices_add(p, "there is no mark '%s' in the stream", p->options.since);
  return status;
}

/* What the session itself has noted. */
static enum ljp_status notices_notes(struct ljp_profile *p)
{
  const struct ljp_profile_pass *pass = p->pass;
  enum ljp_status status = LJP_OK;
  for (uint32_t i = 0; i < pass->note_count && !status; i++) {
    struct ljp_str text = ljp_profile_str(p, pass->notes[i]);
    status = notices_add(p, "%.*s", (int)text.len, text.data);
  }
  if (!status && pass->more_notes)
    status = notices_add(p, "%" PRIu64 " more warning%s (see 'ljprof %s')",
                         pass->more_notes, notices_plural(pass->more_notes),
                         p->recorded_by ? "dump" : "check");
  return status;
}

/* How a file of another profiler ends. */
static enum ljp_status notices_end(struct ljp_profile *p)
{
  return p->pass->ends[0] ? notices_add(p, "%s", p->pass->ends) : LJP_OK;
}

enum ljp_status ljp_profile_make_notices(struct ljp_profile *p)
{
  enum ljp_status status;
  const char *symbols;
  if ((status = notices_end(p)) || (status = notices_notes(p)) ||
      (status = notices_losses(p)) || (status = notices_unsampled(p)) ||
      (status = notices_gaps(p)) || (status = notices_stacks(p)) ||
      (status = notices_memory(p)))
    return status;
  for (size_t i = 0; (symbols = ljp_symbols_notice(p->symbols, i)); i++)
    if ((status = notices_add(p, "%s", symbols)))
      return status;
  return LJP_OK;
}

const char *ljp_profile_notice(const struct ljp_profile *p, uint32_t n)
{
  return n < p->notice_count ? p->notices[n] : NULL;
}
