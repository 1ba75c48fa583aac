/*
** Blocks: cuts a stream of untrusted bytes into whole blocks and the gaps
** between them. Every byte of the input lies in exactly one of them.
** Invariant: no length is believed before its checksum held; memory is the
** window, one decompressed block and zstd's context, whatever the input says.
** One thread a reader.
*/
#ifndef LJP_PARSERS_BLOCKS_H
#define LJP_PARSERS_BLOCKS_H

#include "parsers/stream/crcrange.h"
#include "parsers/stream/item.h"
#include "parsers/stream/input.h"

/* Debug builds: just what the largest block and a header after it need, so
** that bytes are moved all the time. */
#ifdef LJP_DEBUG
#define LJP_WINDOW_BYTES (LJP_BLOCK_MAX_BYTES + 4096u)
#else
#define LJP_WINDOW_BYTES (LJP_BLOCK_MAX_BYTES * 4u)
#endif

/* Input in which no block begins within so many bytes is no stream. (Pipes
** may be endless.) */
#define LJP_LEAD_MAX_BYTES (256u << 20)

struct ljp_blocks {
  struct ljp_input *input;
  uint8_t *window; /* Then LJP_BLOCK_SLACK bytes. */
  uint8_t *raw;    /* Decompressed payload; made when first needed. */
  uint32_t *prefix;
  void *zstd;
  size_t start, end; /* The bytes not yet consumed, in the window. */
  uint64_t offset;   /* Of window[start] in the input. */
  bool eof;
  int error; /* errno of the input. */
  struct ljp_crcrange range;

  size_t hold;        /* Bytes at start that the last item gave out. */
  bool ready, in_gap; /* A block waits behind a gap; a gap is being read. */
  struct ljp_gap gap; /* It. */
  struct ljp_block block;

  bool begun;          /* A whole block was seen: */
  uint64_t stream;     /* its session, */
  uint64_t last_seq;   /* the newest one's number. */
  uint64_t seen_seq;   /* Highest number in a valid header since. */
  uint8_t newer_major; /* A header of a newer version was met; else 0. */
};

enum ljp_found { LJP_FOUND_BLOCK, LJP_FOUND_GAP, LJP_FOUND_END };

enum ljp_status ljp_blocks_init(struct ljp_blocks *b, struct ljp_input *input);
void ljp_blocks_fini(struct ljp_blocks *b);

/*
** The next item: b->block (its payload stays valid until the next call),
** b->gap, or the end. LJP_ERR_IO: the input failed, b->error is why.
** LJP_ERR_FORMAT: no block within LJP_LEAD_MAX_BYTES. LJP_ERR_VERSION: the
** input begins with a block of version b->newer_major. LJP_ERR_MEM: may be
** called again.
*/
enum ljp_status ljp_blocks_next(struct ljp_blocks *b, enum ljp_found *item);

#endif
