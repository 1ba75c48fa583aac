/*
** Blocks: cuts untrusted bytes into whole blocks and the gaps between them.
** Invariants: every byte of the input is in exactly one of these; no length is
** believed before its checksum was right; memory is the window, one
** decompressed block and zstd's context, whatever the input says. One thread a
** reader.
*/
#ifndef LJP_PARSERS_BLOCKS_H
#define LJP_PARSERS_BLOCKS_H

#include "parsers/stream/crcrange.h"
#include "parsers/stream/item.h"
#include "parsers/stream/input.h"

/* Debug builds: hardly more than the largest block and the next header need,
** so that bytes are moved all the time. */
#ifdef LJP_DEBUG
#define LJP_WINDOW_BYTES (LJP_BLOCK_MAX_BYTES + 4096u)
#else
#define LJP_WINDOW_BYTES (LJP_BLOCK_MAX_BYTES * 4u)
#endif

/* Input is not a stream if no block begins within this number of bytes. (A
** pipe may be endless.) */
#define LJP_LEAD_MAX_BYTES (256u << 20)

struct ljp_blocks {
  struct ljp_input *input;
  uint8_t *window; /* LJP_WINDOW_BYTES and LJP_BLOCK_SLACK more. */
  uint8_t *raw;    /* Decompressed payload; allocated when first needed. */
  uint32_t *prefix;
  struct ljp_unzstd *zstd;
  size_t start, end; /* Bytes of the window that are not yet consumed. */
  uint64_t offset;   /* Of window[start] in the input. */
  bool eof;
  int error; /* errno when the input failed. */
  struct ljp_crcrange range;

  size_t hold; /* Bytes at start of the block that was returned last. */
  bool ready;  /* `block` was found; it follows the gap returned last. */
  bool in_gap; /* A gap has begun and not yet ended. */
  struct ljp_gap gap;
  struct ljp_block block;

  bool begun;          /* A whole block was found. */
  uint64_t stream;     /* Of the first one. */
  uint64_t last_seq;   /* Of the newest one. */
  uint64_t seen_seq;   /* Highest number in a valid header of the stream. */
  uint8_t newer_major; /* Of a header of a newer version; 0: none found. */
};

enum ljp_found { LJP_FOUND_BLOCK, LJP_FOUND_GAP, LJP_FOUND_END };

enum ljp_status ljp_blocks_init(struct ljp_blocks *b, struct ljp_input *input);
void ljp_blocks_fini(struct ljp_blocks *b);

/*
** Finds the next block (b->block, whose payload is valid until the next call),
** the next gap (b->gap), or the end. LJP_ERR_IO: the input failed; b->error
** says why. LJP_ERR_FORMAT: no block within LJP_LEAD_MAX_BYTES.
** LJP_ERR_VERSION: the input begins with a block of version b->newer_major.
** LJP_ERR_MEM: the call may be repeated.
*/
enum ljp_status ljp_blocks_next(struct ljp_blocks *b, enum ljp_found *item);

#endif
