/*
** The reader: the one way from a stream's bytes to what it says. It yields
** definitions, events, findings about damage, and the end, in the order of
** the file, and keeps the model of ids and the tally of counts up to date.
**
** Input is untrusted: no memory beyond LJP_READER_MAX_BYTES, no recursion,
** time linear in the input (decompressed, at most 1 MiB a block).
** One thread a reader.
*/
#ifndef LJP_PARSERS_READER_H
#define LJP_PARSERS_READER_H

#include "parsers/stream/blocks.h"
#include "parsers/stream/item.h"
#include "parsers/stream/model.h"
#include "parsers/stream/input.h"
#include "parsers/stream/tally.h"

/* Window and decompressed block, definitions, tally, zstd's context. */
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

  const uint8_t *record, *body, *body_end; /* The one being read. */
  const uint8_t *payload_end;
  unsigned many; /* Its tag if it yields many events, else 0. */
  bool finding;  /* A BAD event waits behind the one given out. */
  struct ljp_bad bad;
  bool gap_behind; /* A gap follows the last block. */
  bool done;
  enum ljp_status failed; /* What ended it early. */
  char error[LJP_READER_ERROR_BYTES];
};

/* Opens a file, a FIFO, or with "-" standard input. On failure
** reader->error says why; ljp_reader_fini() is then allowed, not needed. */
enum ljp_status ljp_reader_open(struct ljp_reader *reader, const char *path);

/* Reads bytes in memory, the caller's, which stay until fini. */
enum ljp_status ljp_reader_memory(struct ljp_reader *reader, const void *data,
                                  size_t size);

void ljp_reader_fini(struct ljp_reader *reader);

/*
** The next event, borrowed until the next call. The last one is
** LJP_ITEM_FINISH, again and again. Otherwise a status with a sentence in
** reader->error: LJP_ERR_FORMAT, the input is no stream at all;
** LJP_ERR_VERSION, it is one of a newer version; LJP_ERR_IO; LJP_ERR_MEM.
** After an error there is nothing more to read.
*/
enum ljp_status ljp_reader_next(struct ljp_reader *reader,
                                const struct ljp_item **item);

/*
** After a SAMPLES event: those that follow it in the same record, as many as
** there are and fit, without a call for each. 0: the next event is something
** else, ljp_reader_next() gives it out. block and all else of the event stand.
*/
size_t ljp_reader_samples(struct ljp_reader *reader,
                          struct ljp_timed_sample *out, size_t room);

#endif
