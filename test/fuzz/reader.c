/*
** Fuzz target: any bytes as a stream, read to the end and dumped as text and
** as JSON. For all input, every byte must be in exactly one block or gap, in
** order; reading must end in a documented way; JSON must be valid.
**
** Most mutations get correct checksums; otherwise no mutation would get past
** them.
*/
#include "parsers/stream/reader.h"
#include "test/support/samples.h"
#include "test/support/fuzz_stream.h"
#include "test/support/json.h"
#include "tools/inspect/dump.h"

/* A few bytes of input may produce much output (a stack of 2,048 frames for
** each sample). The dump of an input ends at this size. */
enum { DUMP_MAX = 1 << 14 };

static struct ljp_reader reader;
static struct ljp_print out;
static char text[DUMP_MAX + (1 << 21)];
static size_t text_len;

static void keep(void *ctx, const char *data, size_t len)
{
  (void)ctx;
  if (len > sizeof text - text_len)
    len = sizeof text - text_len;
  memcpy(text + text_len, data, len);
  text_len += len;
}

static void dump(const struct ljp_item *event, bool json)
{
  if (out.bytes + out.len > DUMP_MAX)
    return;
  text_len = 0;
  uint64_t before = out.bytes;
  ljp_dump_item(&out, &reader, event, json);
  ljp_print_end(&out);
  if (json && out.bytes - before < sizeof text)
    MUST(json_lines_valid(text, text_len));
}

static void read_all(const uint8_t *data, size_t size, bool json)
{
  const struct ljp_item *event;
  uint64_t at = 0, blocks = 0, gaps = 0;
  enum ljp_status status;
  MUST(ljp_reader_memory(&reader, data, size) == LJP_OK);
  ljp_print_begin(&out, -1);
  out.sink = keep;
  while (!(status = ljp_reader_next(&reader, &event))) {
    dump(event, json);
    if (event->what == LJP_ITEM_FINISH)
      break;
    if (event->what == LJP_ITEM_BLOCK) {
      MUST(event->block->offset == at);
      at += LJP_BLOCK_HEAD_BYTES + event->block->head.stored_len;
      blocks++;
    } else if (event->what == LJP_ITEM_GAP) {
      const struct ljp_gap *gap = &event->u.gap;
      MUST(gap->offset == at);
      MUST(gap->reason != LJP_GAP_NONE);
      MUST((gap->bytes == 0) == (gap->reason == LJP_GAP_MISSING));
      at += gap->bytes;
      gaps++;
    }
  }
  const struct ljp_finish *f = &reader.finish;
  if (status == LJP_OK) {
    MUST(at == size && f->bytes == size);
    MUST(f->blocks == blocks && blocks > 0 && f->gaps == gaps);
    MUST(ljp_reader_next(&reader, &event) == LJP_OK);
    MUST(event->what == LJP_ITEM_FINISH);
  } else {
    MUST(status == LJP_ERR_FORMAT || status == LJP_ERR_VERSION);
    MUST(blocks == 0 && reader.error[0]);
    MUST(ljp_reader_next(&reader, &event) == status);
  }
  ljp_reader_fini(&reader);
}

/* Samples read many at a time must equal those read one by one. */
static uint64_t sum_of_samples(const uint8_t *data, size_t size, size_t room)
{
  struct ljp_timed_sample many[8];
  const struct ljp_item *event;
  uint64_t sum = 0;
  MUST(ljp_reader_memory(&reader, data, size) == LJP_OK);
  while (!ljp_reader_next(&reader, &event) && event->what != LJP_ITEM_FINISH) {
    size_t n = event->what == LJP_REC_SAMPLES;
    many[0] = (struct ljp_timed_sample){event->time_ns, event->u.sample};
    while (n) {
      sum = sum_samples(sum, many, n);
      n = room ? ljp_reader_samples(&reader, many, room) : 0;
    }
  }
  sum = sum * 31 + reader.tally.read[LJP_REC_SAMPLES];
  sum = sum * 31 + reader.finish.bad_records;
  ljp_reader_fini(&reader);
  return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  read_all(data, size, size % 2);
  MUST(sum_of_samples(data, size, 0) ==
       sum_of_samples(data, size, 1 + size % 8));
  return 0;
}
