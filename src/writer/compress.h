/*
** Optional compression of a block's payload by zstd. Writer thread only,
** or the copy of a process that writes its own file.
** Without a libzstd.so.1 on the system, ljp_compress_new() returns
** LJP_ERR_NOTSUP.
*/
#ifndef LJP_COMPRESS_H
#define LJP_COMPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/status.h"

struct ljp_compress;

/* ready: takes all memory at once, as much as the level can need, so that
** ljp_compress_block() never takes any. A copy of the process needs that. */
enum ljp_status ljp_compress_new(struct ljp_compress **out, int level,
                                 bool ready);
void ljp_compress_free(struct ljp_compress *compress);

/* Returns the bytes written to out; 0 if the result would not be smaller than
** the input. */
size_t ljp_compress_block(struct ljp_compress *compress, uint8_t *out,
                          size_t room, const uint8_t *in, size_t len);

#endif
