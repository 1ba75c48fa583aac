/*
** Join message: what a client and a joined process tell each other (RFC 8,
** section 4), and the parser for both of them, which trusts nothing.
**
** A message is one datagram of a SOCK_SEQPACKET socket: a head, then fields by
** the list below, little-endian, without padding. A text is a u16 length and
** that many bytes of UTF-8 without zeros; the last text of a message may be as
** long as there is room.
*/
#ifndef LJP_JOIN_MESSAGE_H
#define LJP_JOIN_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  LJP_JOIN_PROTOCOL = 3,
  LJP_JOIN_MESSAGE_BYTES = 4096,
  LJP_JOIN_HEAD_BYTES = 12, /* u16 type, u16 version, u32 serial, u32 bytes */
  LJP_JOIN_NUMBERS = 18,
  LJP_JOIN_TEXTS = 3,
  LJP_JOIN_FDS = 4
};

/* Name, number, who sends it (C: the client, T: the target), numbers (u64),
** texts, descriptors at least and at most. */
#define LJP_JOIN_LIST(_)                                                         \
  /* The client's pid in its own namespace. A pidfd of the client. */            \
  _(HELLO, 1, C, 1, 0, 1, 1)                                                     \
  /* Options as in LJPROF_RECORD. The output; a jitdump and its map. */          \
  _(START, 2, C, 0, 1, 1, 3)                                                     \
  /* 1: even if another client started the session. */                           \
  _(STOP, 3, C, 1, 0, 0, 0)                                                      \
  _(STATUS, 4, C, 0, 0, 0, 0)                                                    \
  _(BYE, 5, C, 0, 0, 0, 0)                                                       \
  /* The name of a mark for all sessions. */                                     \
  _(MARK, 6, C, 0, 1, 0, 0)                                                      \
  /* Stacks are wanted: LJP_JOIN_STACKS_*. The output. */                        \
  _(STACKS, 7, C, 1, 0, 1, 1)                                                    \
  /* A stopped thread: its number, its registers (enum ljp_reg). */              \
  _(PLACE, 8, C, 18, 0, 0, 0)                                                    \
  /* No thread is stopped any more: all stacks are to be written. */             \
  _(TELL, 9, C, 0, 0, 0, 0)                                                      \
  _(VMS, 10, C, 0, 0, 0, 0)                                                      \
  /* VM, bytes of each string, 1: collect garbage first, 1: into the memory    \
  ** session of this client. The output; else a file without a name. */ \
  _(HEAP, 11, C, 4, 0, 1, 1)                                                     \
  /* A file segment, by its number. The file. */                                 \
  _(SEGMENT, 16, C, 1, 0, 1, 1)                                                  \
  /* A proc file system of the program's namespace, for one that has none. No  \
  ** answer. */ \
  _(PROC, 17, C, 0, 0, 1, 1)                                                     \
  /* Protocol, pid in its namespace, VMs, sessions; version. */                  \
  _(WELCOME, 33, T, 4, 1, 0, 0)                                                  \
  /* A text for the user. */                                                     \
  _(ERROR, 34, T, 0, 1, 0, 0)                                                    \
  _(STARTED, 35, T, 0, 0, 0, 0)                                                  \
  /* Bytes, samples, losses, memory events. */                                   \
  _(STOPPED, 36, T, 4, 0, 0, 0)                                                  \
  /* VMs, sessions (LJP_JOIN_SESSION_*), owner's pid, bytes, samples, losses,  \
  ** threads, ns since the start, owner of the memory session, its events;      \
  ** state, timer, path. */ \
  _(STATE, 37, T, 10, 3, 0, 0)                                                   \
  /* The session has ended by itself: bytes, samples, losses; an error. */       \
  _(ENDED, 38, T, 3, 1, 0, 0)                                                    \
  _(PING, 39, T, 0, 0, 0, 0)                                                     \
  /* The sessions that got the mark (LJP_JOIN_SESSION_*). */                     \
  _(MARKED, 40, T, 1, 0, 0, 0)                                                   \
  /* PLACE may come. */                                                          \
  _(READY, 41, T, 0, 0, 0, 0)                                                    \
  /* The thread may go on: frames. */                                            \
  _(PLACED, 42, T, 1, 0, 0, 0)                                                   \
  /* Threads, coroutines. */                                                     \
  _(TOLD, 43, T, 2, 0, 0, 0)                                                     \
  /* How many; their numbers, separated by spaces. */                            \
  _(VM_LIST, 44, T, 1, 1, 0, 0)                                                  \
  /* The heap is copied, and is being written. */                                \
  _(COPIED, 45, T, 0, 0, 0, 0)                                                   \
  /* How (enum ljp_heap_taken), ns of the pause and of the walk, objects,      \
  ** references, bytes, bytes of the file, what could not be read. */ \
  _(HEAP_DONE, 46, T, 8, 0, 0, 0)                                                \
  /* The file segment that is written, and the last one that was asked for. */   \
  _(SEGMENTS, 48, T, 2, 0, 0, 0)

enum ljp_join_type {
#define LJP_X(name, number, ...) LJP_JOIN_##name = number,
  LJP_JOIN_LIST(LJP_X)
#undef LJP_X
};

/* Which sessions there are. */
enum { LJP_JOIN_SESSION_CPU = 1, LJP_JOIN_SESSION_MEMORY = 2 };

/* What stacks are to have. */
enum { LJP_JOIN_STACKS_LOCALS = 1 };

enum ljp_join_side { LJP_JOIN_SIDE_C, LJP_JOIN_SIDE_T };

struct ljp_join_message {
  enum ljp_join_type type;
  uint32_t serial; /* of the request; 0: nobody asked */
  uint64_t number[LJP_JOIN_NUMBERS];
  const char *text[LJP_JOIN_TEXTS]; /* not ended by a zero */
  uint16_t length[LJP_JOIN_TEXTS];
  int fd[LJP_JOIN_FDS]; /* the receiver closes them */
  unsigned fds;
};

/* Returns the number of bytes; 0: a text is too long. The texts of the message
** must be ones that the parser takes. */
size_t ljp_join_pack(const struct ljp_join_message *m,
                     char out[LJP_JOIN_MESSAGE_BYTES]);

/* Reads a message from that side that came with m->fds descriptors. Its texts
** point into the data. NULL, or what is wrong with it. */
const char *ljp_join_parse(struct ljp_join_message *m, enum ljp_join_side from,
                           const char *data, size_t bytes);

/* Sends one; never waits. Returns 0 or an errno (EAGAIN: the other side is
** slow). The descriptors stay the caller's. */
int ljp_join_send(int socket, const struct ljp_join_message *m);

/* Receives one from that side into room, whose texts then point there. Does
** not wait. Descriptors of a message that is wrong are closed. 0, or an errno:
** EAGAIN: there is none; ECONNRESET: the other side is gone; EPROTO: *wrong
** says what it is. */
int ljp_join_receive(int socket, enum ljp_join_side from,
                     char room[LJP_JOIN_MESSAGE_BYTES],
                     struct ljp_join_message *m, const char **wrong);

/* A text of a message, as much as there is room for, ended by a zero. */
void ljp_join_text(const struct ljp_join_message *m, unsigned which, char *out,
                   size_t room);

static inline void ljp_join_set_text(struct ljp_join_message *m, unsigned which,
                                     const char *text)
{
  size_t len = 0;
  while (text && text[len] && len < LJP_JOIN_MESSAGE_BYTES)
    len++;
  m->text[which] = text;
  m->length[which] = (uint16_t)len;
}

#endif
