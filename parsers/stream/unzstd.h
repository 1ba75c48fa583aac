/*
** Decompression of blocks. The context serves all blocks of a reader.
*/
#ifndef LJP_UNZSTD_H
#define LJP_UNZSTD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/status.h"

struct ljp_unzstd;

/* LJP_ERR_NOTSUP: there is no libzstd. */
enum ljp_status ljp_unzstd_new(struct ljp_unzstd **out);
void ljp_unzstd_free(struct ljp_unzstd *unzstd);

/* in is one whole frame of in_len bytes, and has out_len bytes unpacked. */
bool ljp_unzstd(struct ljp_unzstd *unzstd, uint8_t *out, size_t out_len,
                const uint8_t *in, size_t in_len);

#endif
