/*
** The journal of a spool.
*/
#include "tools/push/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "parsers/base/array.h"
#include "src/base/crc32c.h"

static const char journal_magic[4] = {'L', 'J', 'P', 'J'};

static void journal_put(uint8_t *to, uint64_t value, int bytes)
{
  for (int i = 0; i < bytes; i++)
    to[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t journal_get(const uint8_t *from, int bytes)
{
  uint64_t value = 0;
  for (int i = 0; i < bytes; i++)
    value |= (uint64_t)from[i] << 8 * i;
  return value;
}

static uint32_t journal_hash(const uint8_t id[16])
{
  return ljp_hash_finish(
      ljp_hash_mix(journal_get(id, 8), journal_get(id + 8, 8)));
}

struct ljp_journal_entry *ljp_journal_find(const struct ljp_journal *j,
                                           const uint8_t id[16])
{
  uint32_t hash = journal_hash(id);
  if (!j->index.count)
    return NULL;
  for (struct ljp_index_slot *slot = ljp_index_at(&j->index, hash); slot->item;
       slot = ljp_index_next(&j->index, slot))
    if (slot->hash == hash &&
        memcmp(j->entries[slot->item - 1].id, id, 16) == 0)
      return &j->entries[slot->item - 1];
  return NULL;
}

/* Makes room, so that journal_set() cannot fail. */
static bool journal_reserve(struct ljp_journal *j)
{
  return ljp_index_reserve(&j->index) &&
         ljp_array_reserve(&j->entries, j->count, &j->room, sizeof *j->entries);
}

static void journal_set(struct ljp_journal *j, const uint8_t id[16],
                        uint64_t number, enum ljp_journal_what what)
{
  struct ljp_journal_entry *entry = ljp_journal_find(j, id);
  if (!entry) {
    uint32_t hash = journal_hash(id);
    struct ljp_index_slot *slot = ljp_index_at(&j->index, hash);
    while (slot->item)
      slot = ljp_index_next(&j->index, slot);
    ljp_index_put(&j->index, slot, hash, j->count);
    entry = &j->entries[j->count++];
    memcpy(entry->id, id, 16);
  }
  entry->number = number;
  entry->what = what;
  if (number > j->last)
    j->last = number;
}

enum ljp_status ljp_journal_read(struct ljp_journal *j, const uint8_t *data,
                                 size_t len)
{
  for (; len >= LJP_JOURNAL_BYTES;
       data += LJP_JOURNAL_BYTES, len -= LJP_JOURNAL_BYTES) {
    uint64_t what = journal_get(data + 8, 4);
    uint64_t number = journal_get(data + 16, 8);
    if (memcmp(data, journal_magic, 4) != 0 ||
        journal_get(data + 4, 4) !=
            ljp_crc32c(0, data + 8, LJP_JOURNAL_BYTES - 8) ||
        what == 0 || what >= LJP_JOURNAL_WHATS || number >= UINT64_MAX / 2) {
      j->damaged++;
      continue;
    }
    if (!journal_reserve(j))
      return LJP_ERR_MEM;
    journal_set(j, data + 24, number, (enum ljp_journal_what)what);
  }
  return LJP_OK;
}

/* Reads the file from its beginning. Returns 0 or an errno. */
static int journal_load(struct ljp_journal *j)
{
  uint8_t buffer[LJP_JOURNAL_BYTES * 512];
  ssize_t n;
  while ((n = pread(j->fd, buffer, sizeof buffer, (off_t)j->bytes)) != 0) {
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return errno;
    size_t whole = (size_t)n - (size_t)n % LJP_JOURNAL_BYTES;
    if (!whole) { /* A record was torn: its place is used again. */
      j->damaged++;
      return ftruncate(j->fd, (off_t)j->bytes) ? errno : 0;
    }
    if (ljp_journal_read(j, buffer, whole))
      return ENOMEM;
    j->bytes += whole;
  }
  return 0;
}

static int journal_write(struct ljp_journal *j, const uint8_t id[16],
                         uint64_t number, enum ljp_journal_what what)
{
  uint8_t record[LJP_JOURNAL_BYTES] = {0};
  memcpy(record, journal_magic, 4);
  journal_put(record + 8, what, 4);
  journal_put(record + 16, number, 8);
  memcpy(record + 24, id, 16);
  journal_put(record + 4, ljp_crc32c(0, record + 8, sizeof record - 8), 4);
  size_t done = 0;
  while (done < sizeof record) {
    ssize_t n = pwrite(j->fd, record + done, sizeof record - done,
                       (off_t)(j->bytes + done));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      int error = n ? errno : EIO;
      /* The next record takes this place; a part of this one is no damage. */
      if (done && ftruncate(j->fd, (off_t)j->bytes))
        return errno;
      return error;
    }
    done += (size_t)n;
  }
  j->bytes += sizeof record;
  return 0;
}

static bool journal_keeps(const struct ljp_journal *j, uint32_t i)
{
  const struct ljp_journal_entry *e = &j->entries[i];
  return j->count - i <= j->keep || !ljp_journal_is_final(e->what) ||
         e->number == j->last; /* Numbers never come again. */
}

/* Makes a shorter file, which takes the place of the old one when it is complete:
** what waits, and the newest outcomes. What is known stays in memory. If that
** fails, the long one is as good. Returns whether it is shorter. */
static bool journal_shorten(struct ljp_journal *j)
{
  char other[64];
  struct ljp_journal next = {0};
  snprintf(other, sizeof other, "%s.new", j->name);
  next.fd = openat(j->dir, other,
                   O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  int error = next.fd < 0 ? errno : 0;
  for (uint32_t i = 0; i < j->count && !error; i++)
    if (journal_keeps(j, i))
      error = journal_write(&next, j->entries[i].id, j->entries[i].number,
                            j->entries[i].what);
  if (!error && fsync(next.fd))
    error = errno;
  if (!error && renameat(j->dir, other, j->dir, j->name))
    error = errno;
  if (error) {
    if (next.fd >= 0)
      close(next.fd);
    unlinkat(j->dir, other, 0);
    j->limit = 2 * j->bytes;
    return false;
  }
  fsync(j->dir);
  close(j->fd);
  j->fd = next.fd;
  j->bytes = next.bytes;
  j->limit = 2 * j->bytes > j->most ? 2 * j->bytes : j->most;
  return true;
}

/* Forgets what the shorter file does not have; all stays if there is no memory. */
static void journal_forget(struct ljp_journal *j)
{
  struct ljp_index index = {0};
  uint32_t n = 0;
  for (uint32_t i = 0; i < j->count; i++) {
    if (!journal_keeps(j, i))
      continue;
    if (!ljp_index_reserve(&index)) {
      ljp_index_fini(&index);
      return;
    }
    uint32_t hash = journal_hash(j->entries[i].id);
    struct ljp_index_slot *slot = ljp_index_at(&index, hash);
    while (slot->item)
      slot = ljp_index_next(&index, slot);
    ljp_index_put(&index, slot, hash, n++);
  }
  n = 0;
  for (uint32_t i = 0; i < j->count; i++)
    if (journal_keeps(j, i))
      j->entries[n++] = j->entries[i];
  j->count = n;
  ljp_index_fini(&j->index);
  j->index = index;
}

int ljp_journal_open(struct ljp_journal *j, int dir, const char *name,
                     uint64_t most_bytes, uint32_t keep)
{
  *j = (struct ljp_journal){.dir = dir,
                            .name = name,
                            .most = most_bytes,
                            .limit = most_bytes,
                            .keep = keep};
  j->fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (j->fd < 0)
    return errno;
  int error = journal_load(j);
  if (!error && fsync(dir))
    error = errno;
  if (!error && j->bytes > j->limit)
    journal_shorten(j);
  if (error)
    ljp_journal_close(j);
  return error;
}

void ljp_journal_close(struct ljp_journal *j)
{
  if (j->fd >= 0)
    close(j->fd);
  free(j->entries);
  ljp_index_fini(&j->index);
  *j = (struct ljp_journal){.fd = -1};
}

int ljp_journal_add(struct ljp_journal *j, const uint8_t id[16],
                    uint64_t number, enum ljp_journal_what what)
{
  if (!journal_reserve(j))
    return ENOMEM;
  int error = journal_write(j, id, number, what);
  if (!error && fdatasync(j->fd)) {
    error = errno;
    j->bytes -= LJP_JOURNAL_BYTES;
  }
  if (!error)
    journal_set(j, id, number, what);
  if (!error && j->bytes > j->limit && journal_shorten(j))
    journal_forget(j);
  return error;
}

int ljp_journal_remember(struct ljp_journal *j, const uint8_t id[16],
                         uint64_t number, enum ljp_journal_what what)
{
  if (!journal_reserve(j))
    return ENOMEM;
  journal_set(j, id, number, what);
  return 0;
}
