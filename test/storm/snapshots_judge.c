/*
** Adds up the heap snapshots of a session's file: storm_snapshots FILE prints how many
** moments there are, how many snapshots have an end, and of these how many have not the
** bytes that the VM counted at their moment.
*/
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "parsers/stream/reader.h"

enum { MOST = 1 << 16 };

int main(int argc, char **argv)
{
  static struct ljp_reader reader;
  static uint64_t counted[MOST], summed[MOST];
  static bool ended[MOST];
  const struct ljp_item *item;
  uint64_t moments = 0, ends = 0, wrong = 0;
  if (argc != 2) {
    fprintf(stderr, "usage: storm_snapshots FILE\n");
    return 2;
  }
  enum ljp_status status = ljp_reader_open(&reader, argv[1]);
  while (!status && !(status = ljp_reader_next(&reader, &item)) &&
         item->what != LJP_ITEM_FINISH) {
    if (item->what == LJP_REC_HEAP_MOMENT) {
      counted[item->u.heap_moment.snapshot % MOST] =
          item->u.heap_moment.heap_bytes;
      moments++;
    } else if (item->what == LJP_REC_HEAP_END) {
      summed[item->u.heap_end.snapshot % MOST] = item->u.heap_end.bytes;
      ended[item->u.heap_end.snapshot % MOST] = true;
      ends++;
    }
  }
  if (status) {
    fprintf(stderr, "storm_snapshots: %s: %s\n", argv[1], reader.error);
    return 1;
  }
  for (int i = 0; i < MOST; i++)
    wrong += ended[i] && summed[i] != counted[i];
  printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", moments, ends, wrong);
  ljp_reader_fini(&reader);
  return 0;
}
