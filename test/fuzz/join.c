/*
** What a client and a joined program read of each other: a message from either
** side, or the memory of a process, in which the note is looked for. The first
** byte chooses.
*/
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/assert.h"
#include "src/base/join_message.h"
#include "tools/join/find.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
  const uint8_t *data;
  size_t size;
};

enum { BASE = 0x400000 };

static bool fuzz_read(void *ctx, uint64_t at, void *to, size_t count)
{
  const struct bytes *b = ctx;
  if (at < BASE || at - BASE > b->size || count > b->size - (at - BASE))
    return false;
  memcpy(to, b->data + (at - BASE), count);
  return true;
}

static void fuzz_memory(const uint8_t *data, size_t size)
{
  static struct ljp_elf elf;
  struct bytes bytes = {data, size};
  const struct ljp_image_memory memory = {fuzz_read, &bytes};
  struct ljp_join_place place;
  if (!ljp_elf_read(&elf, &memory, BASE))
    return;
  ljp_assert(elf.count <= LJP_ELF_SEGMENTS);
  ljp_note_read(&place, &elf, &memory);
  ljp_assert(place.kind == LJP_PLACE_GOOD ||
             !(place.entry || place.end || place.state || place.stack_top));
}

static void fuzz_message(enum ljp_join_side side, const uint8_t *data,
                         size_t size)
{
  char again[LJP_JOIN_MESSAGE_BYTES];
  struct ljp_join_message m = {.fds = size % 3};
  const char *text = (const char *)data;
  if (ljp_join_parse(&m, side, text, size))
    return;
  /* What is accepted is packed to the same bytes. */
  ljp_assert(ljp_join_pack(&m, again) == size);
  ljp_assert(memcmp(again, data, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (!size)
    return 0;
  if (data[0] % 3 == 2)
    fuzz_memory(data + 1, size - 1);
  else
    fuzz_message(data[0] % 3 ? LJP_JOIN_SIDE_T : LJP_JOIN_SIDE_C, data + 1,
                 size - 1);
  return 0;
}
