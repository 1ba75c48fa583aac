/*
** CRC32C by the processor's instruction where it has one, else by tables, eight
** bytes at a time. The tables are made once, on first use.
*/
#include "src/base/crc32c.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u

static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void crc_table_init(void)
{
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; bit++)
      crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
    table[0][i] = crc;
  }
  for (uint32_t i = 0; i < 256; i++)
    for (int k = 1; k < 8; k++)
      table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 0xff];
}

uint32_t ljp_crc32c_table(uint32_t crc, const void *data, size_t len)
{
  const uint8_t *p = data;
  pthread_once(&table_once, crc_table_init);
  crc = ~crc;
  for (; len >= 8; len -= 8, p += 8) {
    uint32_t lo = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 |
                         (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
    crc = table[7][lo & 0xff] ^ table[6][lo >> 8 & 0xff] ^
          table[5][lo >> 16 & 0xff] ^ table[4][lo >> 24] ^ table[3][p[4]] ^
          table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
  }
  while (len--)
    crc = crc >> 8 ^ table[0][(crc ^ *p++) & 0xff];
  return ~crc;
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
#include <stdatomic.h>

__attribute__((target("sse4.2"))) static uint32_t
crc_hardware(uint32_t crc, const void *data, size_t len)
{
  const uint8_t *p = data;
  uint64_t c = ~crc & 0xffffffffu;
  for (; len >= 8; len -= 8, p += 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    c = _mm_crc32_u64(c, word);
  }
  uint32_t c32 = (uint32_t)c;
  while (len--)
    c32 = _mm_crc32_u8(c32, *p++);
  return ~c32;
}

/* Not __builtin_cpu_supports(), which asks the processor for everything when
** the library is loaded; in a virtual machine each question takes a
** microsecond. */
static bool crc_has_hardware(void)
{
  enum { NOT_ASKED, NO, YES };
  static _Atomic int has = NOT_ASKED;
  int known = atomic_load_explicit(&has, memory_order_relaxed);
  if (known == NOT_ASKED) {
    unsigned a, b, c, d;
    known = __get_cpuid(1, &a, &b, &c, &d) && c & bit_SSE4_2 ? YES : NO;
    atomic_store_explicit(&has, known, memory_order_relaxed);
  }
  return known == YES;
}

uint32_t ljp_crc32c(uint32_t crc, const void *data, size_t len)
{
  if (crc_has_hardware())
    return crc_hardware(crc, data, len);
  return ljp_crc32c_table(crc, data, len);
}
#else
uint32_t ljp_crc32c(uint32_t crc, const void *data, size_t len)
{
  return ljp_crc32c_table(crc, data, len);
}
#endif
