/*
** The way out of the writer: numbers and compresses blocks, adds checksums,
** hands them to the sink, and keeps the totals. Writer thread only.
** Invariant: after an error nothing more is written, except one attempt at END.
*/
#ifndef LJP_BLOCK_OUT_H
#define LJP_BLOCK_OUT_H

#include "src/writer/builder.h"
#include "src/writer/compress.h"
#include "src/writer/sink.h"

struct ljp_block_out {
  struct ljp_sink *sink;         /* NULL: blocks are dropped. */
  struct ljp_compress *compress; /* NULL: no compression. */
  uint8_t *block;                /* Header and payload. */
  uint8_t *packed;               /* The same, compressed. */
  uint64_t stream, seq;
  uint32_t epoch;
  uint32_t segment;
  uint64_t epoch_bytes; /* Before compression: what a reader will hold. */
  uint64_t totals[LJP_RECORD_TAGS]; /* Events by tag in all blocks so far. */
  uint64_t unwritten; /* Events in blocks that could not be written. */
  enum ljp_status status;
};

enum ljp_status ljp_block_out_init(struct ljp_block_out *out,
                                   struct ljp_sink *sink, int zstd_level,
                                   bool ready, uint64_t stream);
void ljp_block_out_fini(struct ljp_block_out *out);

/* Writes the builder's records as a block (nothing if there are none) and
** resets the builder for the same producer. flags: LJP_BLOCK_KEY or 0. */
enum ljp_status ljp_block_out_write(struct ljp_block_out *out,
                                    struct ljp_builder *b, uint16_t flags,
                                    uint64_t now_ns);

#endif
