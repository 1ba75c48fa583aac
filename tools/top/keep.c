/*
** See keep.h.
*/
#include "tools/top/keep.h"

#include <fcntl.h>
#include <string.h>

void ljp_keep_init(struct ljp_keep *k, int fd, uint64_t room_bytes)
{
  k->fd = fd;
  k->room_bytes = room_bytes;
  k->freed = 0;
  k->count = 0;
}

/* Frees what is before an offset, from the beginning each time: of a part of a
** page nothing is freed. If that fails, it is tried again later; the program
** ends the session when there is no more room. */
static void keep_free(struct ljp_keep *k, uint64_t to)
{
  if (to > k->freed &&
      !fallocate(k->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                 (off_t)to))
    k->freed = to;
}

static void keep_epoch(struct ljp_keep *k, uint64_t offset, uint64_t time_ns)
{
  uint32_t drop = k->count == LJP_KEEP_EPOCHS;
  while (drop + 1 < k->count &&
         offset - k->epochs[drop + 1].offset >= k->room_bytes / 4)
    drop++;
  k->count -= drop;
  memmove(k->epochs, k->epochs + drop, k->count * sizeof *k->epochs);
  k->epochs[k->count++] = (struct ljp_keep_epoch){offset, time_ns};
  keep_free(k, k->epochs[0].offset);
}

void ljp_keep_block(struct ljp_keep *k, uint64_t offset, uint64_t time_ns,
                    bool key)
{
  if (key)
    keep_epoch(k, offset, time_ns);
  /* The view goes on, without pages until the next epoch. */
  if (offset - k->freed > k->room_bytes / 8 * 7) {
    k->count = 0;
    keep_free(k, offset);
  }
}
