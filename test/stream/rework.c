/*
** Makes streams from streams, for tests:
**   rework stream IN OUT NUMBER   the same session under another number
**   rework symbols IN OUT         with added symbols, always the same
**   rework losses IN OUT          with 31 events lost by the writer itself
*/
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parsers/stream/reader.h"
#include "src/base/block.h"
#include "tools/rewrite/stream_out.h"

static struct ljp_reader reader;
static struct ljp_stream_out out;

/* Known addresses of module 1 of the golden streams, and one unknown. */
static void put_symbols(const struct ljp_block_head *like)
{
  static const struct ljp_rec_symbol symbols[] = {
      {1, 0x1010, 0, 17, {"inner", 5}, {"app/inner.c", 11}},
      {1, 0x1010, 1, 29, {"outer", 5}, {"app/outer.c", 11}},
      {1, 0x100f, 0, 0, {"", 0}, {"", 0}},
      {1, 0x2020, 0, 0, {"app::Widget<int>::draw()", 24}, {"", 0}}};
  struct ljp_rec_module module = {.id = 1,
                                  .size = 0x100000,
                                  .start = 0x400000,
                                  .flags = LJP_MODULE_MAIN,
                                  .build_id = {"\xde\xad\xbe\xef", 4},
                                  .path = {"/usr/bin/example", 16}};
  struct ljp_block_head head = *like;
  head.flags = 0;
  head.producer = 0;
  out.next_seq = head.seq + 1;
  ljp_out_block(&out, &head);
  ljp_out_record(&out, LJP_REC_MODULE, &module);
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
    ljp_out_record(&out, LJP_REC_SYMBOL, &symbols[i]);
  ljp_out_block_end(&out);
}

static void put_losses(const struct ljp_block_head *like)
{
  struct ljp_block_head head = *like;
  struct ljp_rec_loss loss = {head.time_ns, 0, LJP_LOSS_RING_FULL, 31};
  head.flags = 0;
  out.next_seq = head.seq + 1;
  ljp_out_block(&out, &head);
  ljp_out_record(&out, LJP_REC_LOSS, &loss);
  ljp_out_block_end(&out);
}

int main(int argc, char **argv)
{
  bool losses = argc == 4 && strcmp(argv[1], "losses") == 0;
  bool symbols = losses || (argc == 4 && strcmp(argv[1], "symbols") == 0);
  const struct ljp_item *event;
  unsigned blocks = 0;
  if (!symbols && (argc != 5 || strcmp(argv[1], "stream") != 0)) {
    fprintf(stderr, "usage: rework stream IN OUT NUMBER | symbols IN OUT |"
                    " losses IN OUT\n");
    return 2;
  }
  int in = open(argv[2], O_RDONLY | O_CLOEXEC);
  int to = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (in < 0 || to < 0 || !ljp_out_begin(&out, to) ||
      ljp_reader_open(&reader, argv[2]))
    return 1;
  for (;;) {
    if (ljp_reader_next(&reader, &event) || event->what == LJP_ITEM_GAP)
      return 1; /* Golden streams have none. */
    if (event->what == LJP_ITEM_FINISH)
      break;
    if (event->what != LJP_ITEM_BLOCK)
      continue;
    uint8_t bytes[LJP_BLOCK_HEAD_BYTES];
    struct ljp_block_head head = event->block->head;
    if (symbols)
      head.seq += blocks != 0;
    else
      head.stream = strtoull(argv[4], NULL, 0);
    ljp_block_head_put(bytes, &head);
    ljp_out_raw(&out, bytes, sizeof bytes);
    ljp_out_copy(&out, in, event->block->offset + sizeof bytes, head.stored_len,
                 0);
    if (symbols && blocks == 0)
      (losses ? put_losses : put_symbols)(&event->block->head);
    blocks++;
  }
  ljp_reader_fini(&reader);
  ljp_out_end(&out);
  return out.error || close(to) != 0;
}
