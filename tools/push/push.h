/*
** Push: shared by the files of the command. One thread.
*/
#ifndef LJP_TOOLS_PUSH_H
#define LJP_TOOLS_PUSH_H

#include <stdlib.h>

#include "tools/push/http.h"
#include "tools/push/spool.h"
#include "tools/shared/command.h"

struct ljp_profile;

enum { LJP_PUSH_LABELS = LJP_OPTION_TIMES + 4 };

struct ljp_push_label {
  const char *key, *value;
};

/* The labels of a request. */
struct ljp_push_labels {
  struct ljp_push_label list[LJP_PUSH_LABELS];
  unsigned count;
};

struct ljp_push_options {
  enum ljp_engine engine;
  const char *service, *host, *worker, *version; /* NULL: as found. */
  const char *set[LJP_OPTION_TIMES];             /* "KEY=VALUE" */
  bool all_labels, no_symbols, lua;
  bool skip_doubtful;
  uint64_t first_wait_ms, give_up_ms, aside_ms;
};

/* Since the last request that the server took or refused. */
struct ljp_push_trouble {
  uint64_t attempts, since_ms;
  uint64_t told_ms; /* The last line, also about an earlier trouble. */
  bool told, wrong; /* Of this trouble; that the server or the URL is wrong. */
};

struct ljp_push {
  struct ljp_push_options options;
  struct ljp_http http;
  struct ljp_spool *spool; /* NULL: requests are in memory only. */
  uint64_t files, sent, refused, doubtful, unreadable, empty, known, unsent;
  uint64_t gone, told_drops;
  uint64_t sent_bytes;
  const char *found_service; /* As the folder says; NULL: it does not. */
  uint64_t attempts; /* By this process, of the request that is being sent. */
  uint64_t answers;  /* To these, in a row: the server is there. */
  uint64_t answered_ms;   /* When the first of them came. */
  uint64_t aside;         /* How often a request was set aside. */
  uint64_t waits;         /* In a row: the next one is longer. */
  uint64_t next_send_ms;  /* The end of such a wait; 0: none. */
  uint64_t seed;          /* Of the jitter. */
  uint32_t told_keys[32]; /* Hashes of renamed keys that were told. */
  unsigned told_key_count;
  struct ljp_push_trouble trouble;
  bool follows; /* The command goes on whatever the server does. */
  bool wrong;   /* Nothing can be pushed: the command ends. */
  int error;    /* An errno of the spool: the command ends. */
};

/* -- encode.c -------------------------------------------------------------- */

enum ljp_encoded {
  LJP_ENCODED,
  LJP_ENCODED_EMPTY,   /* Nothing to push. */
  LJP_ENCODED_GROWING, /* It is still being recorded. */
  LJP_ENCODED_FAILED   /* The error was reported. */
};

enum { LJP_PUSH_PROFILES = 3 };

/* The requests of a file, in the order of sending. */
struct ljp_push_requests {
  struct ljp_request list[LJP_PUSH_PROFILES];
  unsigned count;
};
void ljp_push_free(struct ljp_push_requests *requests);

/* Makes the requests of a file; ljp_push_free() ends them. shown: its name in
** messages; id: of its bytes. */
enum ljp_encoded ljp_push_encode(struct ljp_push *push, const char *file,
                                 const char *shown, const uint8_t id[16],
                                 struct ljp_push_requests *out);

/* -- ingest.c -------------------------------------------------------------- */

/* Makes a request of a profile in pprof's format; labels: without the service. */
enum ljp_status ljp_push_ingest(const struct ljp_push_labels *labels,
                                const char *service,
                                const struct ljp_profile *p,
                                const uint8_t *profile, size_t len,
                                struct ljp_request *r);

/* -- command.c ------------------------------------------------------------- */

/* Makes the requests of a file; with a spool, puts them there. false: the file is
** still being recorded. Without a spool, they are left in `out`. */
bool ljp_push_take(struct ljp_push *push, const char *file, const char *shown,
                   const uint8_t id[16], struct ljp_push_requests *out);

/* Reports what the spool has dropped since the last time. */
void ljp_push_tell_drops(struct ljp_push *push);

/* -- labels.c -------------------------------------------------------------- */

/* Checks the options. -1, or the exit code. */
int ljp_push_check_labels(const struct ljp_push_options *options);

/* The labels besides that of the service, under the engine's names. pid: of the
** process that was recorded, 0: not known. `room` holds texts. */
#define LJP_PUSH_LABEL_ROOM (288 + LJP_OPTION_TIMES * 130)
struct ljp_push_labels ljp_push_labels(const struct ljp_push_options *options,
                                       uint64_t pid,
                                       char room[LJP_PUSH_LABEL_ROOM]);

/* Tells, once, that a label of the program gets another key. ctx: the push. */
void ljp_push_tell_renamed(void *ctx, struct ljp_str key, const char *name);

/* The key of the service's name. */
const char *ljp_push_service_key(enum ljp_engine engine);

/* -- send.c ---------------------------------------------------------------- */

/* Sends a request once. Returns the time to wait before the next attempt, or 0
** if this one has an outcome, which is noted, counted and reported. */
uint64_t ljp_push_send(struct ljp_push *push, const struct ljp_request *r);

/* Sends what is in the spool until it is empty, something else must be done
** first, or there is a time to wait, whose end is push->next_send_ms. Before that
** end it does nothing. */
void ljp_push_send_due(struct ljp_push *push);

/* CLOCK_MONOTONIC. */
uint64_t ljp_push_now_ms(void);

/* Waits; false: a signal asks the command to end. */
bool ljp_push_sleep(uint64_t ms);
void ljp_push_catch_signals(void);
bool ljp_push_stopped(void);

/* -- trouble.c ------------------------------------------------------------- */

/* An attempt has failed. wrong: not for the server's state, but because of the URL,
** the token or the like. */
void ljp_push_tell_trouble(struct ljp_push *push, const char *text, bool wrong);
/* The server has taken or refused a request. */
void ljp_push_tell_recovery(struct ljp_push *push);

/* -- follow.c -------------------------------------------------------------- */

/* Pushes what a folder gets, until a signal comes. Returns the exit code. */
int ljp_push_follow(struct ljp_push *push, const char *dir, uint64_t look_ms);

#endif
