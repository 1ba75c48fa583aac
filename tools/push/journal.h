/*
** Journal: what has become of each request of a spool, in a file that survives
** kill -9 and loss of power. A record of LJP_JOURNAL_BYTES is appended and
** synchronized before anything is done that depends on it. When it has grown too
** long, a shorter one takes its place. A record that was torn or damaged is passed over and counted;
** the records around it keep their places. One thread; one process, by a lock.
**
**   magic     4  "LJPJ"
**   crc       4  CRC32C of what follows
**   what      4  enum ljp_journal_what
**   zero      4
**   number    8  of the request: 1, 2 ... in the order of sending
**   id       16  of the file that was pushed: a hash of its bytes
**
** All numbers are little-endian.
*/
#ifndef LJP_TOOLS_PUSH_JOURNAL_H
#define LJP_TOOLS_PUSH_JOURNAL_H

#include <stdbool.h>

#include "parsers/base/index.h"
#include "src/base/status.h"

#define LJP_JOURNAL_BYTES 40u

enum ljp_journal_what {
  LJP_JOURNAL_TAKEN = 1, /* The request is in the spool. */
  LJP_JOURNAL_TRYING,    /* It is being sent: the server may have it. */
  LJP_JOURNAL_SENT,      /* The server has said so. From here: final. */
  LJP_JOURNAL_REFUSED,   /* The server does not want it. */
  LJP_JOURNAL_DROPPED,   /* The spool was full. */
  LJP_JOURNAL_EMPTY,     /* The file had nothing to push. */
  LJP_JOURNAL_DOUBTFUL,  /* Whether the server has it is not known, and it is
                         ** not sent again. */
  LJP_JOURNAL_WHATS
};

struct ljp_journal_entry {
  uint8_t id[16];
  uint64_t number;
  enum ljp_journal_what what;
};

struct ljp_journal {
  int fd, dir;          /* dir: borrowed. */
  const char *name;     /* Borrowed. */
  uint64_t most, limit; /* It is made shorter beyond this; it is then. */
  uint32_t keep;
  struct ljp_journal_entry *entries; /* By the order in which they were taken;
                                     ** each id once. */
  uint32_t count, room;
  struct ljp_index index; /* Over entries, by id. */
  uint64_t last;          /* The highest number. */
  uint64_t bytes;
  uint64_t damaged; /* Records that could not be read. */
};

/* Opens or makes NAME in dir. A journal of more than most_bytes is made shorter, now
** or when it has grown: what waits, and of the rest the newest `keep`. Returns 0 or
** an errno. */
int ljp_journal_open(struct ljp_journal *j, int dir, const char *name,
                     uint64_t most_bytes, uint32_t keep);
void ljp_journal_close(struct ljp_journal *j);

/* NULL: nothing is known of this id. */
struct ljp_journal_entry *ljp_journal_find(const struct ljp_journal *j,
                                           const uint8_t id[16]);

/* Appends a record; the entry changes when it is on disk. Returns 0 or an
** errno. */
int ljp_journal_add(struct ljp_journal *j, const uint8_t id[16],
                    uint64_t number, enum ljp_journal_what what);

/* The same in memory only: for a record that a full disk does not take, and without
** which nothing goes wrong. Returns 0 or ENOMEM. */
int ljp_journal_remember(struct ljp_journal *j, const uint8_t id[16],
                         uint64_t number, enum ljp_journal_what what);

/* Reads records from memory: what ljp_journal_open() does. LJP_ERR_MEM. */
enum ljp_status ljp_journal_read(struct ljp_journal *j, const uint8_t *data,
                                 size_t len);

static inline bool ljp_journal_is_final(enum ljp_journal_what what)
{
  return what >= LJP_JOURNAL_SENT;
}

#endif
