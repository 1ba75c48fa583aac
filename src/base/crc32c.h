/*
** CRC32C (Castagnoli), as in iSCSI: polynomial 0x1EDC6F41 reflected, initial
** value and final xor all ones; "123456789" gives 0xE3069283.
** May be called from any thread, not from a signal handler.
*/
#ifndef LJP_CRC32C_H
#define LJP_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues the checksum crc (0 to begin) with another buffer. */
uint32_t ljp_crc32c(uint32_t crc, const void *data, size_t len);

/* The same without the processor's instruction, for tests. */
uint32_t ljp_crc32c_table(uint32_t crc, const void *data, size_t len);

#endif
