/*
** Identifies the inputs of a merge, sorts them into sessions, and reports
** inputs that do not belong together or do not follow each other.
*/
#include "tools/rewrite/merge.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/assert.h"
#include "tools/shared/command.h"
#include "tools/shared/related.h"

/* Reads the identity of a file from its first whole block. */
int ljp_merge_identify(struct ljp_reader *reader, struct ljp_merge_input *in)
{
  const struct ljp_item *item;
  unsigned blocks = 0;
  in->fd = ljp_out_source("merge", in->path,
                          "only ljprof's own files can be merged; the lines "
                          "of 'ljprof export --to collapsed' of several files "
                          "can be joined instead");
  if (in->fd < 0)
    return LJP_EXIT_FAILED;
  enum ljp_status status = ljp_reader_open(reader, in->path);
  while (!status) {
    status = ljp_reader_next(reader, &item);
    if (status || item->what == LJP_ITEM_FINISH)
      break;
    if (item->what == LJP_ITEM_BLOCK && blocks++ == 0) {
      in->stream = item->block->head.stream;
      in->first_seq = item->block->head.seq;
    } else if (item->what == LJP_REC_EPOCH) {
      in->segment = item->u.epoch.segment;
    } else if (item->what == LJP_REC_PROCESS) {
      const struct ljp_rec_process *p = &item->u.process;
      in->has_process = true;
      in->clock = p->anchor_wall_ns - p->anchor_mono_ns;
      struct ljp_str script = ljp_related_script_of(p->command_line);
      in->executable = strndup(p->executable.data, p->executable.len);
      if (script.len)
        in->script = strndup(script.data, script.len);
      break;
    }
    if (blocks > 1)
      break;
  }
  if (status)
    ljp_command_error("merge", "%s: %s", in->path, reader->error);
  ljp_reader_fini(reader);
  return status ? LJP_EXIT_FAILED : -1;
}

static int merge_by_session(const void *a, const void *b)
{
  const struct ljp_merge_input *x = a, *y = b;
  if (x->session != y->session)
    return x->session < y->session ? -1 : 1;
  return x->first_seq < y->first_seq ? -1 : x->first_seq > y->first_seq;
}

static const char *merge_program(const struct ljp_merge_input *in)
{
  return in->executable ? in->executable : "(unknown)";
}

/* Says once that files are of different scripts, as diff does. */
static void merge_tell_scripts(const struct ljp_merge *m)
{
  const struct ljp_merge_input *one = NULL;
  for (unsigned i = 0; i < m->count; i++) {
    const struct ljp_merge_input *in = &m->inputs[i];
    if (one && in->script && strcmp(one->script, in->script) != 0) {
      ljp_command_note("merge",
                       "the files are of different scripts: %s of %s, %s of %s",
                       one->path, one->script, in->path, in->script);
      return;
    }
    one = one || !in->script ? one : in;
  }
}

int ljp_merge_sort(struct ljp_merge *m, bool unrelated)
{
  for (unsigned i = 0; i < m->count; i++) {
    struct ljp_merge_input *in = &m->inputs[i];
    in->session = m->sessions;
    for (unsigned k = 0; k < i; k++) {
      const struct ljp_merge_input *other = &m->inputs[k];
      if (other->stream == in->stream) {
        in->session = other->session;
        if (other->first_seq == in->first_seq) {
          ljp_command_error("merge", "%s and %s are the same part of a session",
                            other->path, in->path);
          return LJP_EXIT_FAILED;
        }
      } else if (!unrelated &&
                 (!in->has_process || !other->has_process ||
                  strcmp(merge_program(in), merge_program(other)) != 0)) {
        ljp_command_error(
            "merge",
            "%s is from %s, %s from %s: they do not belong together"
            " (use --unrelated to merge them)",
            other->path, merge_program(other), in->path, merge_program(in));
        return LJP_EXIT_FAILED;
      }
    }
    m->sessions += in->session == m->sessions;
  }
  if (!unrelated)
    merge_tell_scripts(m);
  qsort(m->inputs, m->count, sizeof *m->inputs, merge_by_session);
  return -1;
}

/* If a block has a later epoch, but its number occurs in the previous file,
** then symbols were embedded into that file, and all following block numbers
** must grow. */
void ljp_merge_check_order(struct ljp_merge *m,
                           const struct ljp_merge_input *before,
                           const struct ljp_merge_input *in,
                           const struct ljp_block_head *head)
{
  uint64_t first_seq = head->seq + m->more_seq;
  ljp_assert(before->session == in->session &&
             before->first_seq < in->first_seq);
  if (first_seq > m->last_seq + 1) {
    ljp_command_note("merge",
                     "%" PRIu64 " blocks are missing between %s and %s",
                     first_seq - m->last_seq - 1, before->path, in->path);
  } else if (head->epoch > m->last_epoch) {
    m->more_seq += m->last_seq + 1 - first_seq;
    if (in->segment <= before->segment + 1)
      return;
    ljp_command_note("merge",
                     "%" PRIu64 " segments are missing between %s and %s",
                     in->segment - before->segment - 1, before->path, in->path);
    m->more_seq++; /* At least one block. */
  } else {
    ljp_command_note("merge",
                     "%s begins before %s ends: the blocks in both"
                     " are used once",
                     in->path, before->path);
  }
}
