/*
** See joined.h.
*/
#include "tools/top/joined.h"

#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "tools/join/session.h"
#include "tools/join/talk.h"
#include "tools/shared/command.h"

int ljp_top_join(struct ljp_top_joined *j, struct ljp_record_plan *plan)
{
  static char request[LJP_JOIN_MESSAGE_BYTES];
  static struct ljp_talk talk;
  struct ljp_goal goal;
  j->talk = &talk;
  int code = ljp_talk_goal(plan->command, plan->pid, &goal);
  if (code < 0)
    code = ljp_nameless_open(&j->file, plan->command);
  if (code >= 0)
    return code;
  snprintf(plan->path, sizeof plan->path, "%.*s", (int)sizeof plan->path - 1,
           j->file.shown);
  if (!ljp_record_joined_request(plan, request, sizeof request)) {
    ljp_command_error(plan->command, "%s: the name is too long", plan->path);
    return LJP_EXIT_FAILED;
  }
  ljp_keep_init(&j->keep, j->file.fd, plan->room);
  code = ljp_talk_join(j->talk, plan->command, &goal);
  if (code >= 0)
    return code;
  j->socket = talk.socket;
  j->pid = talk.pid;
  snprintf(j->name, sizeof j->name, "%s", talk.name);
  code = ljp_join_session_begin(j->talk, j->file.fd, plan->path, request, NULL);
  if (code >= 0)
    ljp_talk_leave(j->talk);
  return code;
}

/* -- The worker's part ----------------------------------------------------- */
static uint64_t joined_now_ms(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool joined_is_dead(const struct ljp_top_joined *j)
{
  struct pollfd end = {.fd = j->talk->pidfd, .events = POLLIN};
  /* Of a program that cannot be seen here, only the socket tells. */
  return j->talk->pidfd < 0 ? j->gone : poll(&end, 1, 0) > 0;
}

static void joined_hear(struct ljp_top_joined *j, enum ljp_heard heard)
{
  if (heard == LJP_HEARD) {
    enum ljp_join_type type = j->talk->message.type;
    /* Only STOP can be answered by an error here: it has ended the session. */
    if (type == LJP_JOIN_ENDED || type == LJP_JOIN_ERROR)
      ljp_join_text(&j->talk->message, 0, j->why, sizeof j->why);
    j->ended |= type == LJP_JOIN_ENDED || type == LJP_JOIN_STOPPED ||
                type == LJP_JOIN_ERROR;
  } else if (heard != LJP_HEARD_NONE) {
    j->gone = true;
    j->gone_ms = joined_now_ms();
  }
}

/* The session has ended: nothing of ours stays in the program. */
static void joined_part(struct ljp_top_joined *j)
{
  struct ljp_join_message bye = {.type = LJP_JOIN_BYE};
  if (j->talk->socket < 0)
    return;
  ljp_talk_send(j->talk, &bye);
  close(j->talk->socket);
  j->talk->socket = -1;
}

void ljp_top_joined_turn(struct ljp_top_joined *j)
{
  enum { MOST = 100 }; /* A program that floods must not keep the view. */
  struct ljp_proc_status status;
  enum ljp_heard heard = LJP_HEARD;
  for (int i = 0; i < MOST && ljp_top_joined_writes(j) && heard == LJP_HEARD;
       i++)
    joined_hear(j, heard = ljp_talk_hear(j->talk, 0, -1));
  if (j->ended)
    joined_part(j);
  j->dead = joined_is_dead(j);
  j->halted =
      !j->dead && ljp_proc_status(j->pid, 0, &status) && status.state == 'T';
}

bool ljp_top_joined_writes(const struct ljp_top_joined *j)
{
  return !j->ended && !j->gone;
}

const char *ljp_top_joined_state(const struct ljp_top_joined *j, bool done)
{
  enum { DYING_MS = 1000 };
  if (j->dead)
    return "the program has ended";
  if (j->gone && joined_now_ms() - j->gone_ms > DYING_MS)
    return "another program runs there now";
  if (j->ended || j->gone || done)
    return "the recording has ended";
  return j->halted ? "the program is stopped" : "recording";
}

void ljp_top_joined_leave(struct ljp_top_joined *j)
{
  struct ljp_join_message m = {.type = LJP_JOIN_STOP};
  ljp_top_joined_turn(j);
  if (ljp_top_joined_writes(j))
    ljp_talk_send(j->talk, &m);
  while (ljp_top_joined_writes(j))
    joined_hear(j, ljp_talk_hear(j->talk, -1, -1));
  ljp_talk_leave(j->talk);
}
