/*
** See segments.h. There is one session of a client at most, and so one set of
** words.
**
** The program opens no file for a client, since rights and folder are the
** client's. So the writer asks when a segment is due soon (ljp_sink_ready()), the
** helper passes that on, and the present segment continues until the next one has
** come. The client has named it by then: whoever is killed, nothing that was
** written is without a name.
*/
#include "profilers/join/segments.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "src/base/join_message.h"

static struct {
  _Atomic uint32_t begun;  /* the segment that is written; by the writer */
  _Atomic uint32_t wanted; /* the one that the writer waits for; 0: none */
  _Atomic int spare;       /* segment `spare_is`; -1: none; by the helper */
  uint32_t spare_is;
  uint32_t told_begun, told_wanted; /* to the client */
} segments = {.spare = -1};

/* -- The writer's thread --------------------------------------------------- */
static int segments_open(void *ctx, uint32_t segment)
{
  (void)ctx;
  /* Acquire: spare_is belongs to it. */
  int fd = atomic_load_explicit(&segments.spare, memory_order_acquire);
  if (fd >= 0 && segments.spare_is == segment)
    return fd;
  atomic_store(&segments.wanted, segment);
  return -1;
}

static void segments_begun(void *ctx, uint32_t segment)
{
  (void)ctx;
  /* Release: the one before is not used any more. */
  atomic_store_explicit(&segments.begun, segment, memory_order_release);
}

/* -- The helper's ---------------------------------------------------------- */
const struct ljp_sink_next ljp_segments_next = {segments_open, segments_begun,
                                                NULL};

void ljp_segments_begin(void)
{
  atomic_store(&segments.begun, 0);
  atomic_store(&segments.wanted, 0); /* The writer asks again. */
  atomic_store(&segments.spare, -1);
  segments.told_begun = segments.told_wanted = 0;
}

void ljp_segments_give(uint64_t segment, int fd)
{
  if (!segment || atomic_load(&segments.spare) >= 0 ||
      segment != atomic_load(&segments.wanted)) {
    close(fd);
    return;
  }
  segments.spare_is = (uint32_t)segment;
  atomic_store_explicit(&segments.spare, fd, memory_order_release);
}

/* The spare segment is the one that is written now. */
static void segments_settle(int *output)
{
  int spare = atomic_load(&segments.spare);
  if (spare < 0 ||
      segments.spare_is !=
          atomic_load_explicit(&segments.begun, memory_order_acquire))
    return;
  close(*output);
  *output = spare;
  atomic_store(&segments.spare, -1);
}

void ljp_segments_turn(int socket, int *output)
{
  segments_settle(output);
  uint32_t begun = atomic_load(&segments.begun);
  uint32_t wanted = atomic_load(&segments.wanted);
  const struct ljp_join_message m = {.type = LJP_JOIN_SEGMENTS,
                                     .number = {begun, wanted}};
  if ((begun == segments.told_begun && wanted == segments.told_wanted) ||
      ljp_join_send(socket, &m))
    return;
  segments.told_begun = begun;
  segments.told_wanted = wanted;
}

void ljp_segments_end(int *output)
{
  segments_settle(output);
  int spare = atomic_exchange(&segments.spare, -1);
  if (spare >= 0)
    close(spare);
}
