/*
** Many samples at once, out of the reader's window. Where the window ends, or
** something else comes, ljp_tarantool_next() takes over, and finds what is
** wrong. One thread a reader.
**
** Behind the window there are zeros. A zero is no guest frame and ends a list
** of addresses, so neither loop below needs to compare with the window's end.
*/
#include "parsers/tarantool/walk.h"

/* A guest frame of a Lua function: its kind and an address of seven bytes, and
** what of it is compared. */
#define LUA_MASK UINT64_C(0x80808080808080ff)
#define LUA_WORD (UINT64_C(0x0080808080808000) | LJP_LJP_FRAME_LUA)
/* A number of at most two bytes. */
#define SHORT_MASK 0x8080u

/* Moves p behind the guest frames; false: they are not whole or well formed. */
static inline bool samples_skip_guest(const uint8_t **p)
{
  const uint8_t *at = *p;
  for (;;) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    /* Nearly every frame is such a one. The processor foresees that, and waits
    ** for the length of the line only. */
    uint64_t word;
    uint16_t line;
    memcpy(&word, at, sizeof word);
    memcpy(&line, at + sizeof word, sizeof line);
    if (LJP_LIKELY((word & LUA_MASK) == LUA_WORD &&
                   (line & SHORT_MASK) != SHORT_MASK)) {
      at += sizeof word + 1 + (line >> 7 & 1);
      continue;
    }
#endif
    unsigned head = *at++;
    *p = at;
    if (head & LJP_TARANTOOL_END)
      return true;
    if (head < LJP_LJP_FRAME_LUA || head > LJP_LJP_FRAME_BUILTIN ||
        !ljp_number_skip(&at) ||
        (head == LJP_LJP_FRAME_LUA && !ljp_number_skip(&at)))
      return false;
  }
}

static inline bool samples_skip_host(const uint8_t **p)
{
  uint64_t address;
  do
    if (LJP_UNLIKELY(!ljp_number_address(p, &address)))
      return false;
  while (address);
  return true;
}

/* Moves p behind a sample; false: it is none, or not well formed. */
static inline bool samples_skip(const uint8_t **p)
{
  unsigned state = *(*p)++;
  if (LJP_UNLIKELY(state >= LJP_LJP_STATES))
    return false;
  if (state == LJP_LJP_TRACE)
    return ljp_number_skip(p) && ljp_number_skip(p) && ljp_number_skip(p);
  return (!ljp_tarantool_has_guest(state) || samples_skip_guest(p)) &&
         samples_skip_host(p);
}

uint32_t ljp_tarantool_next_samples(struct ljp_tarantool_reader *r,
                                    struct ljp_tarantool_sample *samples,
                                    uint32_t most)
{
  const uint8_t *at = r->at;
  uint32_t n = 0;
  if (!r->samples || r->done)
    return 0;
  while (n < most && at < r->end) {
    const uint8_t *p = at;
    if (LJP_UNLIKELY(!samples_skip(&p)) || p > r->end)
      break;
    samples[n++] = (struct ljp_tarantool_sample){
        .state = *at, .bytes = at, .size = (uint32_t)(p - at)};
    at = p;
  }
  r->at += at - r->at;
  r->events += n;
  return n;
}
