/*
** Joins the file segments of one session: copies their blocks byte for byte.
** A block's number changes only if symbols were embedded into an earlier file.
*/
#include "tools/rewrite/merge.h"

#include "tools/shared/command.h"

/* Appends one input. before: the previous input of the session, or NULL. */
static int append_input(struct ljp_merge *m, const struct ljp_merge_input *in,
                        const struct ljp_merge_input *before)
{
  const struct ljp_item *item;
  enum ljp_status status = ljp_reader_open(m->reader, in->path);
  while (!status && !m->out.error) {
    status = ljp_reader_next(m->reader, &item);
    if (status || item->what == LJP_ITEM_FINISH)
      break;
    if (item->what == LJP_ITEM_GAP) {
      ljp_out_copy(&m->out, in->fd, item->u.gap.offset, item->u.gap.bytes, 0);
    } else if (item->what == LJP_ITEM_BLOCK) {
      const struct ljp_block_head head = item->block->head;
      if (before)
        ljp_merge_check_order(m, before, in, &head);
      before = NULL;
      m->last_seq = head.seq + m->more_seq;
      m->last_epoch = head.epoch;
      ljp_out_copy(&m->out, in->fd, item->block->offset,
                   LJP_BLOCK_HEAD_BYTES + head.stored_len, m->more_seq);
    }
  }
  if (status)
    ljp_command_error("merge", "%s: %s", in->path, m->reader->error);
  ljp_reader_fini(m->reader);
  return status ? LJP_EXIT_FAILED : -1;
}

int ljp_merge_append(struct ljp_merge *m)
{
  int code = -1;
  m->out.next_seq = m->inputs[0].first_seq;
  for (unsigned i = 0; i < m->count && code < 0; i++)
    code = append_input(m, &m->inputs[i], i ? &m->inputs[i - 1] : NULL);
  return code;
}
