/*
** ljprof check: checks that a stream is whole and was closed, and shows losses.
*/
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/stream/balance.h"
#include "parsers/stream/growth.h"
#include "parsers/stream/names.h"
#include "parsers/stream/reader.h"
#include "tools/inspect/check_heap.h"
#include "tools/inspect/tarantool.h"
#include "tools/shared/command.h"
#include "tools/shared/show.h"

static const char help[] =
    "Usage: ljprof check [--json] FILE\n"
    "Reads a stream to its end. Shows the number of blocks, records and "
    "events, the\n"
    "events that were lost before they reached the file and why, the CPU time "
    "that the\n"
    "process used and how much of it was not sampled and why, each gap, each\n"
    "malformed record, each heap snapshot that is incomplete, each warning "
    "that "
    "the\n"
    "session wrote, and whether the file was closed.\n"
    "\n"
    "  --json   write one JSON object\n"
    "  --help   show this help\n"
    "\n"
    "Exit code: 0 whole and closed (lost events are not damage); 1 damaged, "
    "not\n"
    "closed, still recording, ended by an error, not readable, or not a "
    "stream; 2\n"
    "wrong usage.\n";

static void check_note(struct ljp_shower *show, const struct ljp_rec_note *note)
{
  const char *severity = ljp_name_shown(LJP_SHOW_NOTE, note->severity);
  if (show->json) {
    ljp_show_item(show);
    ljp_show_listed(show, "kind", "note", 0);
    ljp_show_listed(show, "severity", severity, note->severity);
    ljp_show_string(show, "text", note->text);
    ljp_show_item_end(show);
    return;
  }
  ljp_print_format(show->out, "%s: ", severity ? severity : "note");
  ljp_print_quoted(show->out, note->text);
  ljp_print_str(show->out, "\n");
}

/* Prints damage and warnings when they are found: there may be any number. */
static void check_finding(struct ljp_shower *show, const struct ljp_item *item)
{
  if (item->what == LJP_REC_NOTE) {
    if (item->u.note.severity >= LJP_NOTE_WARNING)
      check_note(show, &item->u.note);
    return;
  }
  const struct ljp_gap *gap = &item->u.gap;
  const struct ljp_bad *bad = &item->u.bad;
  if (show->json) {
    ljp_show_item(show);
    if (item->what == LJP_ITEM_GAP) {
      ljp_show_listed(show, "kind", "gap", 0);
      ljp_show_number(show, "offset", gap->offset);
      ljp_show_number(show, "bytes", gap->bytes);
      ljp_show_number(show, "missing_blocks", gap->missing);
      ljp_show_bool(show, "missing_known", gap->missing_known);
      ljp_show_listed(show, "reason", ljp_name_gap(gap->reason), gap->reason);
    } else {
      ljp_show_listed(show, "kind", "malformed", 0);
      ljp_show_number(show, "block_offset", item->block->offset);
      ljp_show_number(show, "payload_offset", bad->payload_offset);
      ljp_show_number(show, "bytes", bad->bytes);
      ljp_show_listed(show, "record", ljp_name_record(bad->tag), bad->tag);
      ljp_show_listed(show, "reason", ljp_name_bad(bad->reason), bad->reason);
    }
    ljp_show_item_end(show);
    return;
  }
  if (item->what == LJP_ITEM_GAP) {
    ljp_print_format(show->out, "gap at offset %" PRIu64 ": %" PRIu64 " bytes",
                     gap->offset, gap->bytes);
    if (!gap->missing_known)
      ljp_print_str(show->out, ", unknown number of blocks missing");
    else if (gap->missing)
      ljp_print_format(show->out, ", %" PRIu64 " block%s missing", gap->missing,
                       gap->missing == 1 ? "" : "s");
    ljp_print_format(show->out, ": %s\n", ljp_name_gap(gap->reason));
  } else {
    const char *name = ljp_name_record(bad->tag);
    ljp_print_format(show->out,
                     "malformed record in the block at offset %" PRIu64
                     ", byte %u of its payload: ",
                     item->block->offset, bad->payload_offset);
    if (name)
      ljp_print_str(show->out, name);
    else
      ljp_print_format(show->out, "tag %" PRIu64, bad->tag);
    ljp_print_format(show->out, ": %s\n", ljp_name_bad(bad->reason));
  }
}

static const char *check_end_text(const struct ljp_finish *f)
{
  if (f->recording)
    return "still recording";
  if (f->clean)
    return f->closed == LJP_CLOSED_END ? "closed by the end of the session"
                                       : "closed by the next segment";
  return f->closed == LJP_CLOSED_NOT
             ? "not closed (the writer was killed, or the end is missing)"
             : "closed, but something follows";
}

static void check_counts(struct ljp_shower *show, const struct ljp_tally *tally)
{
  if (show->json)
    ljp_show_list(show, "records");
  for (unsigned tag = 0; tag < LJP_TALLY_TAGS; tag++) {
    const char *name = ljp_name_record(tag);
    uint64_t read = tally->read[tag], records = tally->records[tag];
    uint64_t swallowed = tally->swallowed[tag];
    if (!records && !read && !swallowed)
      continue;
    if (show->json) {
      ljp_show_item(show);
      ljp_show_listed(show, "name", name, tag);
      ljp_show_number(show, "records", records);
      ljp_show_number(show, "read", read);
      ljp_show_number(show, "swallowed", swallowed);
      ljp_show_item_end(show);
      continue;
    }
    ljp_print_format(show->out, "%-14s %12" PRIu64 " in %" PRIu64 " records",
                     name ? name : "unknown tag", read, records);
    if (swallowed)
      ljp_print_format(show->out, ", %" PRIu64 " more lost in gaps", swallowed);
    ljp_print_str(show->out, "\n");
  }
  if (show->json)
    ljp_show_list_end(show);
}

static void check_balance_json(struct ljp_shower *show,
                               const struct ljp_balance *b, uint64_t missing,
                               uint64_t lost)
{
  ljp_show_bool(show, "cpu_time_known", b->told);
  ljp_show_number(show, "cpu_used_ns", ljp_balance_used(b));
  ljp_show_number(show, "cpu_recorder_ns",
                  b->unsampled_ns[LJP_UNSAMPLED_WRITER]);
  ljp_show_number(show, "cpu_sampled_ns", b->sampled_ns);
  ljp_show_number(show, "cpu_unsampled_ns", missing);
  ljp_show_number(show, "cpu_lost_ns", lost);
  ljp_show_signed(show, "cpu_difference_ns", ljp_balance_difference(b));
  ljp_show_list(show, "unsampled");
  for (uint32_t i = 0; i < b->gap_count; i++) {
    const struct ljp_balance_gap *gap = &b->gaps[i];
    ljp_show_item(show);
    ljp_show_number(show, "thread", gap->thread);
    ljp_show_number(show, "tid", gap->tid);
    ljp_show_string(show, "name", ljp_str(gap->name, gap->name_bytes));
    ljp_show_listed(show, "time",
                    gap->kind == LJP_PRODUCER_CPU ? "cpu" : "wall", 0);
    const char *why = ljp_name_unsampled(gap->why);
    ljp_show_listed(show, "reason", why ? why : "unknown", 0);
    ljp_show_number(show, "ns", gap->ns);
    ljp_show_item_end(show);
  }
  ljp_show_list_end(show);
}

/* Losses by producer and reason, in the order of the stream. */
static void check_losses(struct ljp_shower *show, const struct ljp_tally *tally)
{
  if (show->json)
    ljp_show_list(show, "losses");
  for (size_t i = 0; i < tally->loss_count; i++) {
    const struct ljp_tally_loss *loss = &tally->losses[i];
    const char *why =
        loss->overrun ? "timer expiries merged" : ljp_name_loss(loss->reason);
    if (show->json) {
      ljp_show_item(show);
      ljp_show_listed(show, "kind", loss->overrun ? "overrun" : "loss", 0);
      ljp_show_number(show, "producer", loss->producer);
      ljp_show_listed(show, "reason", why, loss->reason);
      ljp_show_number(show, "count", loss->count);
      ljp_show_item_end(show);
      continue;
    }
    ljp_print_format(show->out, "%-14s %12" PRIu64 " of producer %" PRIu64 ": ",
                     loss->overrun ? "overrun" : "lost", loss->count,
                     loss->producer);
    if (why)
      ljp_print_str(show->out, why);
    else
      ljp_print_format(show->out, "reason %" PRIu64, loss->reason);
    ljp_print_str(show->out, "\n");
  }
  if (show->json)
    ljp_show_list_end(show);
}

static void check_summary(struct ljp_shower *show, const struct ljp_finish *f,
                          bool whole)
{
  if (show->json) {
    ljp_show_number(show, "bytes", f->bytes);
    ljp_show_number(show, "blocks", f->blocks);
    ljp_show_number(show, "gaps", f->gaps);
    ljp_show_number(show, "gap_bytes", f->gap_bytes);
    ljp_show_number(show, "missing_blocks", f->missing_blocks);
    ljp_show_bool(show, "missing_known", f->missing_known);
    ljp_show_number(show, "bad_records", f->bad_records);
    ljp_show_number(show, "unknown_records", f->unknown_records);
    ljp_show_listed(show, "end", check_end_text(f), 0);
    ljp_show_bool(show, "clean_end", f->clean);
    ljp_show_bool(show, "recording", f->recording);
    ljp_show_listed(show, "status", ljp_name_shown(LJP_SHOW_STATUS, f->status),
                    f->status);
    ljp_show_number(show, "error", f->error);
    ljp_show_bool(show, "whole", whole);
    return;
  }
  ljp_print_format(show->out,
                   "%" PRIu64 " blocks in %" PRIu64 " bytes; %" PRIu64
                   " gaps of %" PRIu64 " bytes",
                   f->blocks, f->block_bytes, f->gaps, f->gap_bytes);
  if (f->gaps && !f->missing_known)
    ljp_print_format(show->out, ", at least %" PRIu64 " blocks missing",
                     f->missing_blocks);
  else if (f->missing_blocks)
    ljp_print_format(show->out, ", %" PRIu64 " blocks missing",
                     f->missing_blocks);
  ljp_print_format(show->out,
                   "\n%" PRIu64 " malformed records, %" PRIu64
                   " of unknown kinds\n%s\n",
                   f->bad_records, f->unknown_records, check_end_text(f));
  if (f->status) {
    const char *name = ljp_name_shown(LJP_SHOW_STATUS, f->status);
    ljp_print_str(show->out, "the session was ended by an error: ");
    if (name)
      ljp_print_str(show->out, name);
    else
      ljp_print_format(show->out, "status %" PRIu64, f->status);
    if (f->error && f->error <= INT_MAX)
      ljp_print_format(show->out, " (%s)", strerror((int)f->error));
    ljp_print_str(show->out, "\n");
  }
  ljp_print_format(show->out, "%s\n",
                   whole       ? "whole"
                   : f->status ? "CUT SHORT"
                   : f->recording && !f->gaps && !f->bad_records
                       ? "whole so far"
                       : "DAMAGED or not closed");
}

/* Of how many VMs the memory was recorded, and whether all of it was. */
static void check_memory(struct ljp_shower *show,
                         const struct ljp_growth *growth)
{
  const struct ljp_growth_sums sums = ljp_growth_sums(growth);
  if (!sums.followed)
    return;
  if (show->json) {
    ljp_show_number(show, "vms", sums.vms);
    ljp_show_number(show, "memory_vms", sums.followed);
    ljp_show_bool(show, "memory_comparable", sums.comparable);
    if (sums.comparable) {
      ljp_show_signed(show, "heap_growth_bytes", sums.counted);
      ljp_show_signed(show, "event_growth_bytes", sums.events);
      ljp_show_number(show, "unequal_vms", sums.unequal);
    }
    return;
  }
  ljp_print_format(show->out, "memory of %" PRIu64 " of %" PRIu64 " VM%s",
                   sums.followed, sums.vms, sums.vms == 1 ? "" : "s");
  if (sums.comparable)
    ljp_print_format(show->out,
                     ": the heaps grew by %" PRId64
                     " bytes by LuaJIT's own count, by %" PRId64
                     " by the events: difference %" PRId64,
                     sums.counted, sums.events, sums.counted - sums.events);
  if (sums.comparable && sums.unequal)
    ljp_print_format(
        show->out, "; not equal for %" PRIu64 " VM%s, first VM id %" PRIu64,
        sums.unequal, sums.unequal == 1 ? "" : "s", sums.first_unequal);
  ljp_print_str(show->out, "\n");
}

/* The balance of CPU time, if the session sampled any. */
static void check_balance(struct ljp_shower *show, const struct ljp_balance *b)
{
  char text[LJP_BALANCE_TEXT_BYTES], time[4][LJP_BALANCE_TIME_BYTES];
  int64_t difference = ljp_balance_difference(b);
  uint64_t lost = b->unsampled_ns[LJP_UNSAMPLED_LOST];
  uint64_t missing = ljp_balance_missing(b);
  if (show->json) {
    check_balance_json(show, b, missing, lost);
    return;
  }
  if (b->told)
    ljp_print_format(
        show->out, "CPU time %s = samples %s + not sampled %s + lost %s",
        ljp_balance_time(ljp_balance_used(b), time[0]),
        ljp_balance_time(b->sampled_ns, time[1]),
        ljp_balance_time(missing, time[2]), ljp_balance_time(lost, time[3]));
  if (b->told && difference)
    ljp_print_format(show->out, " %s %s",
                     difference < 0 ? "- counted twice" : "+ not explained",
                     ljp_balance_time((uint64_t)llabs(difference), time[0]));
  ljp_print_str(show->out, b->told ? "\n" : "");
  for (unsigned i = 0; i < 2 * LJP_UNSAMPLED_COUNT; i++) {
    unsigned kind = i % 2 ? LJP_PRODUCER_WALL : LJP_PRODUCER_CPU;
    if (!ljp_balance_text(b, kind, i / 2, text))
      continue;
    ljp_print_str(show->out, "  ");
    ljp_print_safe(show->out, ljp_str(text, strlen(text)));
    ljp_print_str(show->out, "\n");
  }
  if (ljp_balance_off(b))
    ljp_print_format(show->out, "%s\n", ljp_balance_off_text(b, text));
}

static enum ljp_status check_run(struct ljp_reader *reader,
                                 struct ljp_shower *show,
                                 struct ljp_balance *balance,
                                 struct ljp_growth *growth, bool *whole)
{
  struct ljp_snapshots snapshots = {.missing = ljp_check_snapshot, .ctx = show};
  const struct ljp_item *item;
  enum ljp_status status;
  if (show->json) {
    ljp_show_begin(show, "check");
    ljp_show_list(show, "findings");
  }
  while (!(status = ljp_reader_next(reader, &item)) &&
         item->what != LJP_ITEM_FINISH && !show->out->error &&
         !(status = ljp_balance_take(balance, &reader->model, item, 0)) &&
         !(status = ljp_growth_take(growth, item))) {
    ljp_snapshots_take(&snapshots, item);
    if (item->what == LJP_ITEM_GAP || item->what == LJP_ITEM_BAD ||
        item->what == LJP_REC_NOTE)
      check_finding(show, item);
  }
  if (!status)
    ljp_snapshots_take(&snapshots, item);
  if (show->json)
    ljp_show_list_end(show);
  if (!status)
    status = ljp_balance_finish(balance, &reader->model, 0);
  if (status) {
    if (show->json) {
      ljp_show_string(show, "error",
                      ljp_str(reader->error, strlen(reader->error)));
      ljp_show_bool(show, "whole", false);
      ljp_show_end(show);
    }
    return status;
  }
  const struct ljp_finish *f = &reader->finish;
  *whole = f->clean && !f->gaps && !f->bad_records && !f->status &&
           !snapshots.incomplete;
  check_counts(show, &reader->tally);
  check_losses(show, &reader->tally);
  check_balance(show, balance);
  check_memory(show, growth);
  ljp_check_snapshots(show, &snapshots);
  check_summary(show, f, *whole);
  if (show->json)
    ljp_show_end(show);
  return LJP_OK;
}

int ljp_command_check(int argc, char **argv)
{
  static struct ljp_reader reader;
  static struct ljp_print out;
  static struct ljp_growth growth;
  const char *file;
  const char *budget = NULL;
  bool json = false, whole = false;
  const struct ljp_flag flags[] = {{"--json", &json, NULL},
                                   {"--expect -", NULL, &budget}};
  int code = ljp_command_options("check", help, argc, argv, flags, 2, &file);
  if (code >= 0)
    return code;
  if (budget) { /* People look for it here. */
    ljp_command_error(
        "check", "budgets have a command: ljprof expect FILE '%s'", budget);
    return LJP_EXIT_USAGE;
  }
  struct ljp_input input;
  bool tarantool;
  if ((code = ljp_inspect_open("check", file, &input, &tarantool)))
    return code;
  if (tarantool)
    return ljp_check_tarantool(file, &input, json);
  ljp_print_begin(&out, 1);
  struct ljp_shower show = {.out = &out, .json = json};
  enum ljp_status status = ljp_reader_input(&reader, &input);
  struct ljp_balance balance;
  ljp_balance_init(&balance);
  if (!status)
    status = check_run(&reader, &show, &balance, &growth, &whole);
  ljp_balance_fini(&balance);
  ljp_growth_fini(&growth);
  code = ljp_command_end("check", &out, whole ? LJP_EXIT_OK : LJP_EXIT_FAILED);
  if (status) {
    ljp_command_error("check", "%s: %s", file,
                      *reader.error ? reader.error : ljp_status_text(status));
    code = LJP_EXIT_FAILED;
  }
  ljp_reader_fini(&reader);
  return code;
}
