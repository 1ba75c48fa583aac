/*
** Spool: a folder with requests that wait for their server, and the journal of
** what has become of them. Each request is a file of its own,
** NUMBER.request, that appears when it is complete. Requests are sent in the
** order of their numbers; one that was set aside lets the others go first. The sizes of the files add up to no more than the
** budget: when there is no room, the oldest requests go, and are counted.
**
** One process uses a spool, by a lock on the file `lock`. One thread.
*/
#ifndef LJP_TOOLS_PUSH_SPOOL_H
#define LJP_TOOLS_PUSH_SPOOL_H

#include "tools/push/answer.h"
#include "tools/push/journal.h"

/* The head of a request's file; numbers are little-endian.
**   magic   4  "LJPQ"
**   crc     4  CRC32C of what follows, the body too
**   engine  4  enum ljp_engine
**   zero    4
**   number  8
**   id     16
**   bytes   8  of the body
**   source 208 name of the file that was pushed, cut, ends with NUL
** Then the body. */
enum { LJP_REQUEST_HEAD = 256, LJP_REQUEST_SOURCE = 208 };

struct ljp_request {
  uint64_t number;
  uint8_t id[16];
  enum ljp_engine engine;
  char source[LJP_REQUEST_SOURCE];
  uint8_t *body; /* NULL: not read. */
  uint64_t len;
};

struct ljp_spool_entry {
  uint64_t number, bytes;
  uint64_t
      aside_until_ms; /* Others go before it until then; 0: it goes first. */
};

struct ljp_spool {
  const char *path; /* Borrowed. */
  int dir, lock;
  struct ljp_journal journal;
  struct ljp_spool_entry *waiting; /* In the order of sending. */
  uint32_t count, room;
  uint64_t bytes, budget;
  bool strict; /* No request goes before the journal has said TRYING on disk. */
  uint64_t dropped, dropped_bytes; /* For want of room. */
  uint64_t damaged;                /* Requests that could not be read. */
  enum ljp_engine engine;
};

/* Opens or makes the spool. On failure `why` is a sentence, and the spool is
** closed. Damage that was found is in the counters. */
bool ljp_spool_open(struct ljp_spool *s, const char *path, uint64_t budget,
                    enum ljp_engine engine, char *why, size_t room);
void ljp_spool_close(struct ljp_spool *s);

/* Adds a request; its number is set. Returns 0 or an errno: EFBIG, it is larger
** than the budget; then it is counted as dropped. */
int ljp_spool_add(struct ljp_spool *s, struct ljp_request *r);

/* Reads the request that is to be sent next: the first that was not set aside, else
** one whose time has come. false: there is none. A damaged one is counted and
** dropped on the way. */
bool ljp_spool_next(struct ljp_spool *s, uint64_t now_ms,
                    struct ljp_request *r);

/* Lets all others go before this request until then. */
void ljp_spool_set_aside(struct ljp_spool *s, uint64_t number,
                         uint64_t until_ms);
bool ljp_spool_is_aside(const struct ljp_spool *s, uint64_t number);

/* Notes what has become of a request; if that is final, its file goes. When the
** disk is full, that file goes first and makes room for the record; for TRYING of a
** strict spool the oldest of the others is dropped. Other records may be missing on
** a full disk. Returns 0 or an errno of the journal. */
int ljp_spool_note(struct ljp_spool *s, const struct ljp_request *r,
                   enum ljp_journal_what what);

/* Reads the head and checks it and the body. */
bool ljp_request_read(const uint8_t *data, size_t len, struct ljp_request *r);

#endif
