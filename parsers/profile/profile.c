/*
** The life of a profile, and the pass over its streams: hands each item of the
** reader to the file that counts it. One thread a profile.
*/
#include "parsers/profile/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/profile/context.h"
#include "parsers/profile/gc_cost.h"
#include "parsers/profile/intern.h"
#include "parsers/profile/labels.h"
#include "parsers/profile/pass.h"
#include "parsers/tarantool/reader.h"
#include "src/base/assert.h"

#define PROFILE_ERROR_BYTES (LJP_READER_ERROR_BYTES + 64)

struct ljp_profile *ljp_profile_new(const struct ljp_profile_options *options)
{
  struct ljp_profile *p = calloc(1, sizeof *p);
  if (!p)
    return NULL;
  if (options)
    p->options = *options;
  p->options.symbols.no_files |= p->options.no_symbols;
  p->totals.missing_known = true;
  ljp_balance_init(&p->balance);
  p->symbols = ljp_symbols_new(&p->options.symbols);
  p->pass = calloc(1, sizeof *p->pass);
  if (p->pass && p->symbols) {
    p->pass->filters_time = p->options.from_ns || p->options.to_ns;
    p->pass->filters = p->pass->filters_time || p->options.labels.count;
    p->pass->epoch = 1;
    if (!ljp_profile_init_intern(p) && !ljp_profile_init_definitions(p) &&
        !ljp_labels_init(p))
      return p;
  }
  ljp_profile_free(p);
  return NULL;
}

void ljp_profile_free_pass(struct ljp_profile *p)
{
  struct ljp_profile_pass *pass = p->pass;
  if (!pass)
    return;
  ljp_index_fini(&pass->frame_index);
  ljp_index_fini(&pass->node_index);
  ljp_index_fini(&pass->context_index);
  ljp_index_fini(&pass->row_index);
  ljp_index_fini(&pass->trace_index);
  ljp_index_fini(&pass->blacklisted_index);
  ljp_index_fini(&pass->label_index);
  ljp_stack_map_clear(&pass->stacks);
  free(pass->protos);
  ljp_gc_cost_free(pass);
  ljp_live_fini(&pass->live);
  free(pass->memory.vms);
  ljp_growth_fini(&pass->growth);
  free(pass);
  p->pass = NULL;
}

void ljp_profile_free(struct ljp_profile *p)
{
  if (!p)
    return;
  ljp_profile_free_pass(p);
  ljp_strings_fini(&p->strings);
  ljp_balance_fini(&p->balance);
  ljp_symbols_free(p->symbols);
  for (uint32_t i = 0; i < p->notice_count; i++)
    free(p->notices[i]);
  free(p->notices);
  free(p->frames);
  free(p->functions);
  free(p->nodes);
  free(p->contexts);
  free(p->rows);
  free(p->memory);
  free(p->estimates);
  free(p->sites);
  free(p->modules);
  free(p->threads);
  free(p->vms);
  free(p->gc);
  free(p->marks);
  free(p->traces);
  free(p->trace_events);
  free(p->blacklisted);
  free(p->labels);
  free(p->label_pairs);
  free(p->points);
  free(p->births.list);
  free(p);
}

struct ljp_str ljp_profile_str(const struct ljp_profile *p, uint32_t string)
{
  const struct ljp_strings *strings = &p->strings;
  return string < strings->count ? strings->list[string] : strings->list[0];
}

struct ljp_str ljp_profile_name(const struct ljp_profile *p, uint32_t string,
                                const char *what, uint64_t id)
{
  struct ljp_str s = ljp_profile_str(p, string);
  char number[40];
  int n = snprintf(number, sizeof number, "%s %" PRIu64, what, id);
  bool same = s.len == (uint32_t)n && memcmp(s.data, number, s.len) == 0;
  return same ? ljp_profile_str(p, 0) : s;
}

/* Notes a new block, which may begin another session (in a merged file, or in
** another input). */
static enum ljp_status profile_take_block(struct ljp_profile *p,
                                          const struct ljp_block *block)
{
  struct ljp_profile_pass *pass = p->pass;
  enum ljp_status status;
  pass->context.valid = false;
  if (p->options.progress)
    p->options.progress(p->options.progress_ctx, block->offset);
  if (pass->begun && block->head.stream == pass->stream)
    return LJP_OK;
  if (!pass->begun) {
    p->origin_ns = block->head.time_ns;
  } else {
    if ((status = ljp_profile_end_memory(p)))
      return status;
    pass->source++;
    pass->placed = 0;
    pass->held_seen = false;
    ljp_stack_map_clear(&pass->stacks);
  }
  pass->begun = true;
  pass->stream = block->head.stream;
  p->source_count = pass->source + 1;
  return LJP_OK;
}

/* A number that the writer has counted; 0: it has told none. */
static uint64_t profile_counted(const struct ljp_reader *reader,
                                const char *key)
{
  enum { DIGITS = 18 }; /* That many cannot overflow. */
  const struct ljp_rec_info *info = ljp_model_info(&reader->model, key);
  uint64_t number = 0;
  for (uint32_t i = 0; info && i < info->value.len && i < DIGITS; i++) {
    unsigned digit = (unsigned)(info->value.data[i] - '0');
    if (digit > 9)
      break;
    number = number * 10 + digit;
  }
  return number;
}

/* Whether the session ended because its program did. */
static bool profile_ended(const struct ljp_reader *reader)
{
  return reader->finish.clean && ljp_model_info(&reader->model, "session.end");
}

/* Adds what the reader counted as lost, damaged or missing. */
static void profile_count_damage(struct ljp_profile *p,
                                 const struct ljp_reader *reader)
{
  const struct ljp_finish *f = &reader->finish;
  const struct ljp_tally *tally = &reader->tally;
  struct ljp_profile_totals *t = &p->totals;
  t->gaps += f->gaps;
  t->gap_bytes += f->gap_bytes;
  t->missing_blocks += f->missing_blocks;
  t->missing_known = t->missing_known && (f->missing_known || !f->gaps);
  t->bad_records += f->bad_records;
  t->unclosed += !f->clean && !f->recording;
  t->recording += f->recording;
  t->continued += f->closed == LJP_CLOSED_SEGMENT;
  if (f->closed !=
      LJP_CLOSED_END) /* The time of the newest samples is not told. */
    p->balance.edge_ns += t->cpu_ns - p->pass->told_cpu_ns;
  if (f->closed == LJP_CLOSED_END && f->status) {
    t->end_status = f->status;
    t->end_errno = f->error;
  }
  for (size_t i = 0; i < tally->loss_count; i++) {
    const struct ljp_tally_loss *loss = &tally->losses[i];
    if (loss->overrun) {
      t->overruns += loss->count;
      continue;
    }
    t->lost[loss->reason < LJP_LOSS_COUNT ? loss->reason : LJP_LOSS_COUNT] +=
        loss->count;
    t->lost_all += loss->count;
  }
  for (unsigned tag = 0; tag < LJP_TALLY_TAGS; tag++)
    t->swallowed += tally->swallowed[tag];
  t->unnamed += profile_counted(reader, "functions.unnamed");
  t->other_labels += profile_counted(reader, "labels.other");
}

static enum ljp_status profile_fail(struct ljp_profile *p,
                                    enum ljp_status status, const char *why)
{
  snprintf(p->error, sizeof p->error, "%s", why);
  return status;
}

static enum ljp_status profile_observe(const struct ljp_profile *p,
                                       const struct ljp_reader *reader,
                                       const struct ljp_item *item)
{
  return LJP_UNLIKELY(p->options.observe)
             ? p->options.observe(p->options.observe_ctx, reader, item)
             : LJP_OK;
}

enum ljp_status ljp_profile_add(struct ljp_profile *p,
                                struct ljp_reader *reader)
{
  const struct ljp_item *item;
  enum ljp_status status;
  p->pass->reader = reader;
  p->pass->epoch++;
  p->pass->context.valid = false;
  while (!(status = ljp_reader_next(reader, &item))) {
    if (LJP_UNLIKELY(status = ljp_growth_take(&p->pass->growth, item)))
      return profile_fail(p, status, ljp_status_text(status));
    if (LJP_LIKELY(item->what == LJP_REC_SAMPLES)) {
      if (!p->options.no_samples)
        status = ljp_profile_take_samples(p, reader, item);
    } else if (LJP_LIKELY(item->what == LJP_REC_MEM)) {
      status = profile_observe(p, reader, item);
      if (!p->options.no_memory && !status)
        status = ljp_profile_take_memory(p, item);
    } else if (!(status = ljp_profile_flush_memory(p)) &&
               !(status = profile_observe(p, reader, item))) {
      if (item->what == LJP_ITEM_FINISH)
        break;
      status = item->what == LJP_ITEM_BLOCK ? profile_take_block(p, item->block)
                                            : ljp_profile_take_event(p, item);
    }
    if (LJP_UNLIKELY(status))
      return profile_fail(p, status, ljp_status_text(status));
  }
  p->pass->reader = NULL;
  if (status)
    return profile_fail(p, status, reader->error);
  profile_count_damage(p, reader);
  p->ran_to_end =
      (p->source_count < 2 || p->ran_to_end) && profile_ended(reader);
  if (!p->options.no_samples && !p->options.thread && !p->pass->filters &&
      (status =
           ljp_balance_finish(&p->balance, &reader->model, p->pass->source)))
    return profile_fail(p, status, ljp_status_text(status));
  return LJP_OK;
}

enum ljp_status ljp_profile_finish(struct ljp_profile *p)
{
  enum ljp_status status;
  ljp_assert(!p->pass->batch.count);
  if ((status = ljp_context_check_thread(p)) || (status = ljp_labels_check(p)))
    return status;
  p->growth = ljp_growth_sums(&p->pass->growth);
  if ((status = ljp_profile_end_memory(p)) ||
      (p->options.gc_cost && (status = ljp_gc_cost_finish(p))) ||
      (status = ljp_profile_rebuild(p)) ||
      (p->options.label_frames && (status = ljp_profile_frame_labels(p))))
    return profile_fail(p, status, ljp_status_text(status));
  if (!p->recorded_by) {
    p->balance.sampled_ns = p->totals.cpu_ns;
    p->balance.wall_ns = p->totals.wall_ns;
  }
  if ((status = ljp_profile_make_notices(p)))
    return profile_fail(p, status, ljp_status_text(status));
  ljp_profile_free_pass(p);
  if (p->options.lua_view && (status = ljp_profile_fold(p, NULL)))
    return profile_fail(p, status, ljp_status_text(status));
  return LJP_OK;
}

/* Reads the input into the profile with the reader that its first bytes ask
** for. error: LJP_READER_ERROR_BYTES + 64. */
static enum ljp_status profile_read(struct ljp_profile *p,
                                    struct ljp_input *input, char *error)
{
  struct ljp_tarantool_reader tarantool;
  struct ljp_reader *reader = NULL;
  enum ljp_status status;
  ssize_t head = ljp_input_peek(input);
  if (head < 0) {
    snprintf(error, PROFILE_ERROR_BYTES, "cannot read: %s", strerror(errno));
    ljp_input_close(input);
    return LJP_ERR_IO;
  }
  if (ljp_tarantool_begins(input->peeked, (size_t)head)) {
    if (!(status = ljp_tarantool_init(&tarantool, input))) {
      status = ljp_profile_add_tarantool(p, &tarantool);
      ljp_tarantool_fini(&tarantool);
    }
  } else if (!(reader = malloc(sizeof *reader))) {
    ljp_input_close(input);
    status = LJP_ERR_MEM;
  } else if (!(status = ljp_reader_input(reader, input))) {
    status = ljp_profile_add(p, reader);
    ljp_reader_fini(reader);
  }
  free(reader);
  if (!status)
    status = ljp_profile_finish(p);
  if (status)
    snprintf(error, PROFILE_ERROR_BYTES, "%s",
             p->error[0] ? p->error : ljp_status_text(status));
  return status;
}

enum ljp_status ljp_profile_load(const char *path,
                                 const struct ljp_profile_options *options,
                                 struct ljp_profile **profile,
                                 char error[LJP_READER_ERROR_BYTES + 64])
{
  struct ljp_profile *p = ljp_profile_new(options);
  struct ljp_input input;
  char why[LJP_INPUT_ERROR_BYTES];
  enum ljp_status status = LJP_ERR_MEM;
  *profile = NULL;
  if (!p)
    snprintf(error, PROFILE_ERROR_BYTES, "%s", ljp_status_text(status));
  else if ((status = ljp_input_open(&input, path, why)))
    snprintf(error, PROFILE_ERROR_BYTES, "%s", why);
  else
    status = profile_read(p, &input, error);
  if (status)
    ljp_profile_free(p);
  else
    *profile = p;
  return status;
}
