/*
** Talk: a joined process, from the client's side: examines the process and visits
** it, or knocks at its door, and speaks with the helper there.
*/
#ifndef LJP_TOOLS_TALK_H
#define LJP_TOOLS_TALK_H

#include "src/base/join_message.h"
#include "tools/join/visit.h"

/* The value of -p. */
struct ljp_goal {
  pid_t pid;
  const char *door; /* the path of the process's socket; NULL: by its number */
};

struct ljp_talk {
  const char *command; /* for messages */
  const char *door;    /* as in the goal */
  pid_t pid;           /* 0: it has none in this namespace */
  char comm[LJP_COMM_BYTES];
  char name[LJP_COMM_BYTES + 140]; /* "process 4711 (app)", for messages */
  int pidfd, memory, socket;       /* memory: see ljp_memory_open() */
  uint32_t serial;
  struct ljp_visit visit;
  /* Of the answer to hello. */
  uint64_t vms, sessions;
  char version[64];
  /* The last message. */
  struct ljp_join_message message;
  char room[LJP_JOIN_MESSAGE_BYTES];
};

enum ljp_heard {
  LJP_HEARD,      /* a message, whether it was asked for or not */
  LJP_HEARD_NONE, /* in this time */
  LJP_HEARD_END,  /* the process has ended, or is another program now */
  LJP_HEARD_WRONG /* what speaks there is no library of ours */
};

/* Reads the value of -p: a process number, or a path, which has a '/'. -1: it is
** one; else the exit code. */
int ljp_talk_goal(const char *command, const char *text, struct ljp_goal *goal);

/* Joins the process. -1: joined; else the exit code after reporting why not. */
int ljp_talk_join(struct ljp_talk *talk, const char *command,
                  const struct ljp_goal *goal);
/* Says goodbye. */
void ljp_talk_leave(struct ljp_talk *talk);

/* Sends a request. Returns 0 or an errno. */
int ljp_talk_send(struct ljp_talk *talk, struct ljp_join_message *m);
/* Waits for any message but PING. extra: a descriptor that ends the wait, too
** (then the result is NONE), or -1. */
enum ljp_heard ljp_talk_hear(struct ljp_talk *talk, int timeout_ms, int extra);
/* Waits for the answer to the last request. -1: it has come and is of this
** type; else the exit code after reporting what happened. */
int ljp_talk_answer(struct ljp_talk *talk, enum ljp_join_type type,
                    int timeout_ms);
/* Reports that the process ended, was replaced, or lies. */
int ljp_talk_ended(struct ljp_talk *talk, enum ljp_heard heard);

#endif
