/*
** The reader: the only way from a stream's bytes to what they say. It yields
** items (item.h) in the order of the file, and keeps the model of ids and the
** tally of counts up to date.
**
** Input is untrusted: the reader uses no memory beyond LJP_READER_MAX_BYTES,
** no recursion, and time linear in the input (decompressed, at most 1 MiB a
** block). One thread a reader.
*/
#ifndef LJP_PARSERS_READER_H
#define LJP_PARSERS_READER_H

#include "parsers/stream/blocks.h"
#include "parsers/stream/heap_decode.h"
#include "parsers/stream/item.h"
#include "parsers/stream/model.h"
#include "parsers/stream/input.h"
#include "parsers/stream/tally.h"

/* The window and a decompressed block, the model, the tally, zstd's context. */
#define LJP_READER_MAX_BYTES                                                   \
  (LJP_WINDOW_BYTES + LJP_BLOCK_MAX_BYTES + LJP_MODEL_MAX_BYTES + (8u << 20))

#define LJP_READER_ERROR_BYTES 256

struct ljp_reader {
  struct ljp_input input;
  struct ljp_blocks blocks;
  struct ljp_model model;
  struct ljp_tally tally;
  struct ljp_item item;
  struct ljp_finish finish;

  const uint8_t *record, *body, *body_end; /* The record being read. */
  const uint8_t *payload_end;              /* Of its block. */
  unsigned many;                /* Its tag if it yields many items; else 0. */
  struct ljp_heap_decoder heap; /* Of the OBJECTS record being read. */
  bool finding; /* `bad` is the item after the one returned last. */
  struct ljp_bad bad;
  bool gap_behind;        /* The newest gap is after the newest block. */
  bool done;              /* Nothing more is read. */
  enum ljp_status failed; /* The error that ended it; 0: none. */
  char error[LJP_READER_ERROR_BYTES];
};

/* Opens a file or a FIFO; "-" is standard input. On failure reader->error says
** why; then ljp_reader_fini() may be called but need not be. */
enum ljp_status ljp_reader_open(struct ljp_reader *reader, const char *path);

/* Takes over an input that is open. Errors as above. */
enum ljp_status ljp_reader_input(struct ljp_reader *reader,
                                 const struct ljp_input *input);

/* Reads bytes in memory, which must stay valid until ljp_reader_fini(). */
enum ljp_status ljp_reader_memory(struct ljp_reader *reader, const void *data,
                                  size_t size);

void ljp_reader_fini(struct ljp_reader *reader);

/*
** The next item, borrowed until the next call. After the last one, which is
** LJP_ITEM_FINISH, the same item is returned again and again.
**
** On failure reader->error is a sentence. LJP_ERR_FORMAT: the input is not a
** stream. LJP_ERR_VERSION: it is a stream of a newer version. LJP_ERR_IO.
** LJP_ERR_MEM. Each later call returns the same error.
*/
enum ljp_status ljp_reader_next(struct ljp_reader *reader,
                                const struct ljp_item **item);

/*
** After a SAMPLES item: returns the samples that follow it in the same record,
** as many as there are and as fit, without a call for each. Other members of
** the item, such as block, apply to them, too. 0: the next item is not a sample
** of this record; ljp_reader_next() returns it.
*/
size_t ljp_reader_samples(struct ljp_reader *reader,
                          struct ljp_timed_sample *out, size_t room);

#endif
