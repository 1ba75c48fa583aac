/*
** The spool: files of requests.
**
** The order of two writes decides what kill -9 can do. A request's file is on
** disk before the journal says TAKEN; a file that the journal does not know is
** taken then. The journal says SENT before the file goes; a file that is still
** there although it was sent, is removed.
**
** A full disk must not stop the spool, since only the spool can make room there. So
** what a journal without a record would lead to decides what is done:
**   TAKEN     the file of the request says it, too
**   TRYING    with --in-doubt skip, this request could go twice: a request is dropped
**             to make room; otherwise nothing is different
**   outcomes  the file of the request goes first, and mostly makes room
*/
#include "tools/push/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parsers/base/array.h"
#include "src/base/crc32c.h"

enum { NAME_BYTES = 32, JOURNAL_MOST = 1 << 22, JOURNAL_KEEP = 1 << 15 };

static const char spool_magic[4] = {'L', 'J', 'P', 'Q'};
#define REQUEST_MOST ((uint64_t)1 << 30)

static void spool_put(uint8_t *to, uint64_t value, int bytes)
{
  for (int i = 0; i < bytes; i++)
    to[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t spool_get(const uint8_t *from, int bytes)
{
  uint64_t value = 0;
  for (int i = 0; i < bytes; i++)
    value |= (uint64_t)from[i] << 8 * i;
  return value;
}

static void spool_name(char name[NAME_BYTES], uint64_t number,
                       const char *suffix)
{
  snprintf(name, NAME_BYTES, "%016" PRIx64 ".%s", number, suffix);
}

bool ljp_request_read(const uint8_t *data, size_t len, struct ljp_request *r)
{
  *r = (struct ljp_request){0};
  if (len < LJP_REQUEST_HEAD ||
      memcmp(data, spool_magic, sizeof spool_magic) != 0 ||
      spool_get(data + 40, 8) != len - LJP_REQUEST_HEAD ||
      spool_get(data + 4, 4) != ljp_crc32c(0, data + 8, len - 8) ||
      spool_get(data + 8, 4) >= LJP_ENGINE_COUNT ||
      data[48 + LJP_REQUEST_SOURCE - 1])
    return false;
  r->engine = (enum ljp_engine)spool_get(data + 8, 4);
  r->number = spool_get(data + 16, 8);
  memcpy(r->id, data + 24, 16);
  memcpy(r->source, data + 48, LJP_REQUEST_SOURCE);
  r->len = len - LJP_REQUEST_HEAD;
  return r->number != 0 && r->number < UINT64_MAX / 2;
}

/* Reads a whole file of the spool. NULL: errno. */
static uint8_t *spool_load(struct ljp_spool *s, const char *name, size_t *len)
{
  struct stat st;
  int fd = openat(s->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  uint8_t *data = NULL;
  size_t done = 0;
  if (fd < 0)
    return NULL;
  if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
      (uint64_t)st.st_size <= REQUEST_MOST)
    data = malloc((size_t)st.st_size + 1);
  else
    errno = EFBIG;
  while (data && done < (size_t)st.st_size) {
    ssize_t n = read(fd, data + done, (size_t)st.st_size - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    done += (size_t)n;
  }
  *len = done;
  close(fd);
  return data;
}

static bool spool_insert(struct ljp_spool *s, uint64_t number, uint64_t bytes)
{
  if (!ljp_array_reserve(&s->waiting, s->count, &s->room, sizeof *s->waiting))
    return false;
  uint32_t at = s->count++;
  while (at && s->waiting[at - 1].number > number) {
    s->waiting[at] = s->waiting[at - 1];
    at--;
  }
  s->waiting[at] = (struct ljp_spool_entry){.number = number, .bytes = bytes};
  s->bytes += bytes;
  return true;
}

static void spool_forget(struct ljp_spool *s, uint32_t at)
{
  s->bytes -= s->waiting[at].bytes;
  s->count--;
  memmove(s->waiting + at, s->waiting + at + 1,
          (s->count - at) * sizeof *s->waiting);
}

/* Appends a record, or remembers it if the disk is full. Returns 0 or an errno. */
static int spool_record(struct ljp_spool *s, const struct ljp_request *r,
                        enum ljp_journal_what what)
{
  int error = ljp_journal_add(&s->journal, r->id, r->number, what);
  return error == ENOSPC
             ? ljp_journal_remember(&s->journal, r->id, r->number, what)
             : error;
}

/* A request that cannot be read is kept under another name, for people. */
static void spool_keep_damaged(struct ljp_spool *s, uint64_t number)
{
  char name[NAME_BYTES], aside[NAME_BYTES];
  spool_name(name, number, "request");
  spool_name(aside, number, "damaged");
  if (renameat(s->dir, name, s->dir, aside))
    unlinkat(s->dir, name, 0);
  s->damaged++;
}

/* Takes a file that was found in the folder. Returns 0 or an errno. */
static int spool_find(struct ljp_spool *s, const char *name, uint64_t number)
{
  struct ljp_request r;
  size_t len;
  uint8_t *data = spool_load(s, name, &len);
  bool whole = data && ljp_request_read(data, len, &r) && r.number == number;
  free(data);
  if (!whole) {
    if (number > s->journal.last)
      s->journal.last = number;
    spool_keep_damaged(s, number);
    return 0;
  }
  if (r.engine != s->engine)
    return EXDEV;
  const struct ljp_journal_entry *entry = ljp_journal_find(&s->journal, r.id);
  if (entry && (ljp_journal_is_final(entry->what) || entry->number != number))
    return unlinkat(s->dir, name, 0) ? errno : 0;
  if (!spool_insert(s, number, len))
    return ENOMEM;
  return entry ? 0 : spool_record(s, &r, LJP_JOURNAL_TAKEN);
}

static int spool_scan(struct ljp_spool *s)
{
  int fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);
  const struct dirent *d;
  int error = 0;
  if (!dir) {
    error = errno;
    if (fd >= 0)
      close(fd);
    return error;
  }
  while (!error && (errno = 0, d = readdir(dir))) {
    char *end, name[NAME_BYTES];
    uint64_t number = strtoull(d->d_name, &end, 16);
    spool_name(name, number, "request");
    if (number && strcmp(d->d_name, name) == 0)
      error = spool_find(s, name, number);
    spool_name(name, number, "making"); /* Left by a crash. */
    if (strcmp(d->d_name, name) == 0)
      unlinkat(s->dir, name, 0);
  }
  closedir(dir);
  return error;
}

static bool spool_fail(struct ljp_spool *s, char *why, size_t room,
                       const char *what, int error)
{
  if (error == EWOULDBLOCK)
    snprintf(why, room, "another ljprof push uses it");
  else if (error == EXDEV)
    snprintf(why, room, "it holds requests for another engine");
  else
    snprintf(why, room, "%s: %s", what, ljp_errno_text(error));
  ljp_spool_close(s);
  return false;
}

bool ljp_spool_open(struct ljp_spool *s, const char *path, uint64_t budget,
                    enum ljp_engine engine, char *why, size_t room)
{
  /* Unlike flock(), this lock does not pass to a child that looks up symbols and
  ** may live on for a moment. */
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  int error;
  *s = (struct ljp_spool){
      .path = path, .dir = -1, .lock = -1, .budget = budget, .engine = engine};
  s->journal.fd = -1;
  if (mkdir(path, 0700) && errno != EEXIST)
    return spool_fail(s, why, room, "cannot be made", errno);
  s->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (s->dir < 0)
    return spool_fail(s, why, room, "cannot be opened", errno);
  s->lock =
      openat(s->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (s->lock < 0 || fcntl(s->lock, F_SETLK, &whole))
    return spool_fail(s, why, room, "its lock",
                      s->lock >= 0 && errno == EACCES ? EWOULDBLOCK : errno);
  if ((error = ljp_journal_open(&s->journal, s->dir, "journal", JOURNAL_MOST,
                                JOURNAL_KEEP))) {
    s->journal.fd = -1;
    return spool_fail(s, why, room, "its journal", error);
  }
  if ((error = spool_scan(s)))
    return spool_fail(s, why, room, "cannot be read", error);
  return true;
}

void ljp_spool_close(struct ljp_spool *s)
{
  if (s->journal.fd >= 0)
    ljp_journal_close(&s->journal);
  if (s->lock >= 0)
    close(s->lock);
  if (s->dir >= 0)
    close(s->dir);
  free(s->waiting);
  s->waiting = NULL;
  s->count = 0;
  s->dir = s->lock = -1;
}

static int spool_write_all(int fd, const uint8_t *data, size_t len)
{
  while (len) {
    ssize_t n = write(fd, data, len);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return n ? errno : EIO;
    data += n;
    len -= (size_t)n;
  }
  return 0;
}

/* Makes the file of a request, complete or not at all. */
static int spool_write(struct ljp_spool *s, const struct ljp_request *r)
{
  uint8_t head[LJP_REQUEST_HEAD] = {0};
  char making[NAME_BYTES], name[NAME_BYTES];
  memcpy(head, spool_magic, sizeof spool_magic);
  spool_put(head + 8, r->engine, 4);
  spool_put(head + 16, r->number, 8);
  memcpy(head + 24, r->id, 16);
  spool_put(head + 40, r->len, 8);
  memcpy(head + 48, r->source, LJP_REQUEST_SOURCE - 1);
  uint32_t crc = ljp_crc32c(0, head + 8, sizeof head - 8);
  spool_put(head + 4, ljp_crc32c(crc, r->body, r->len), 4);
  spool_name(making, r->number, "making");
  spool_name(name, r->number, "request");
  int fd = openat(s->dir, making,
                  O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0)
    return errno;
  int error = spool_write_all(fd, head, sizeof head);
  if (!error)
    error = spool_write_all(fd, r->body, r->len);
  if (!error && fsync(fd))
    error = errno;
  if (close(fd) && !error)
    error = errno;
  if (!error && renameat(s->dir, making, s->dir, name))
    error = errno;
  if (error)
    unlinkat(s->dir, making, 0);
  else if (fsync(s->dir))
    error = errno;
  return error;
}

/* Reads a request that waits. false: it is damaged, and waits no more. */
static bool spool_read(struct ljp_spool *s, uint32_t at, struct ljp_request *r)
{
  char name[NAME_BYTES];
  size_t len;
  uint64_t number = s->waiting[at].number;
  spool_name(name, number, "request");
  uint8_t *data = spool_load(s, name, &len);
  if (data && ljp_request_read(data, len, r) && r->number == number) {
    memmove(data, data + LJP_REQUEST_HEAD, r->len);
    r->body = data;
    return true;
  }
  free(data);
  spool_keep_damaged(s, number);
  spool_forget(s, at);
  return false;
}

/* Drops a request. Returns 0 or an errno. */
static int spool_drop(struct ljp_spool *s, uint32_t at)
{
  struct ljp_request r;
  const uint64_t bytes = s->waiting[at].bytes;
  if (!spool_read(s, at, &r))
    return 0;
  free(r.body);
  int error = ljp_spool_note(s, &r, LJP_JOURNAL_DROPPED);
  if (error)
    return error;
  s->dropped++;
  s->dropped_bytes += bytes;
  return 0;
}

int ljp_spool_add(struct ljp_spool *s, struct ljp_request *r)
{
  int error = 0;
  const uint64_t bytes = r->len + LJP_REQUEST_HEAD;
  r->engine = s->engine;
  r->number = s->journal.last + 1;
  if (bytes > s->budget || bytes > REQUEST_MOST) {
    s->dropped++;
    s->dropped_bytes += bytes;
    error = spool_record(s, r, LJP_JOURNAL_DROPPED);
    return error ? error : EFBIG;
  }
  while (!error && s->count && s->bytes + bytes > s->budget)
    error = spool_drop(s, 0);
  if (!error)
    error = spool_write(s, r);
  while (error == ENOSPC && s->count && !(error = spool_drop(s, 0)))
    error = spool_write(s, r);
  if (!error && !spool_insert(s, r->number, bytes))
    error = ENOMEM;
  return error ? error : spool_record(s, r, LJP_JOURNAL_TAKEN);
}

/* s->count: there is none. */
static uint32_t spool_find_next(const struct ljp_spool *s, uint64_t now_ms)
{
  uint32_t at = 0;
  while (at < s->count && s->waiting[at].aside_until_ms)
    at++;
  if (at == s->count)
    for (at = 0; at < s->count && s->waiting[at].aside_until_ms > now_ms; at++)
      ;
  return at;
}

bool ljp_spool_next(struct ljp_spool *s, uint64_t now_ms, struct ljp_request *r)
{
  uint32_t at;
  while ((at = spool_find_next(s, now_ms)) < s->count)
    if (spool_read(s, at, r))
      return true;
  return false;
}

static struct ljp_spool_entry *spool_entry(const struct ljp_spool *s,
                                           uint64_t number)
{
  for (uint32_t at = 0; at < s->count; at++)
    if (s->waiting[at].number == number)
      return &s->waiting[at];
  return NULL;
}

void ljp_spool_set_aside(struct ljp_spool *s, uint64_t number,
                         uint64_t until_ms)
{
  struct ljp_spool_entry *entry = spool_entry(s, number);
  if (entry)
    entry->aside_until_ms = until_ms;
}

bool ljp_spool_is_aside(const struct ljp_spool *s, uint64_t number)
{
  const struct ljp_spool_entry *entry = spool_entry(s, number);
  return entry && entry->aside_until_ms;
}

/* The oldest request but this one; s->count: there is none. */
static uint32_t spool_oldest_but(const struct ljp_spool *s, uint64_t number)
{
  return s->count && s->waiting[0].number == number ? 1 : 0;
}

int ljp_spool_note(struct ljp_spool *s, const struct ljp_request *r,
                   enum ljp_journal_what what)
{
  const bool final = ljp_journal_is_final(what);
  const bool must = what == LJP_JOURNAL_TRYING && s->strict;
  char name[NAME_BYTES];
  uint32_t at = 0;
  int error = ljp_journal_add(&s->journal, r->id, r->number, what);
  spool_name(name, r->number, "request");
  while (error == ENOSPC && must &&
         (at = spool_oldest_but(s, r->number)) < s->count &&
         !(error = spool_drop(s, at)))
    error = ljp_journal_add(&s->journal, r->id, r->number, what);
  if (final && (!error || error == ENOSPC))
    unlinkat(s->dir, name, 0);
  if (error == ENOSPC && !must)
    error = spool_record(s, r, what);
  if (error || !final)
    return error;
  const struct ljp_spool_entry *entry = spool_entry(s, r->number);
  if (entry)
    spool_forget(s, (uint32_t)(entry - s->waiting));
  return 0;
}
