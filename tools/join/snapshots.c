/*
** See snapshots.h. This process keeps the time, because it makes the files. A
** round that is still going on when the next one is due takes its place.
*/
#include "tools/join/snapshots.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/base/heap_format.h"
#include "tools/join/nameless.h"
#include "tools/shared/command.h"

static uint64_t snapshots_now_ms(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void ljp_join_snapshots_init(struct ljp_join_snapshots *s, const char *command,
                             uint64_t every_ms, bool last)
{
  *s = (struct ljp_join_snapshots){
      .command = command, .every_ms = every_ms, .last = last};
}

void ljp_join_snapshots_start(struct ljp_join_snapshots *s)
{
  if (s->every_ms)
    s->due_ms = snapshots_now_ms() + s->every_ms;
}

/* As long as a copy of a big heap may be on its way. */
static uint64_t snapshots_patience_ms(const struct ljp_join_snapshots *s)
{
  enum { LIST_MS = 10000, TAKE_MS = 660000 };
  return s->step == LJP_SNAPSHOTS_ASKS ? LIST_MS : TAKE_MS;
}

int ljp_join_snapshots_wait_ms(const struct ljp_join_snapshots *s)
{
  enum { LONGEST_MS = 1000000 };
  uint64_t now = snapshots_now_ms(), until = s->due_ms;
  if (s->step != LJP_SNAPSHOTS_IDLE)
    until = s->since_ms + snapshots_patience_ms(s);
  if (!until)
    return -1;
  uint64_t left = until > now ? until - now : 0;
  return left > LONGEST_MS ? LONGEST_MS : (int)left;
}

static void snapshots_ask(struct ljp_join_snapshots *s, struct ljp_talk *talk,
                          struct ljp_join_message *m)
{
  s->since_ms = snapshots_now_ms();
  ljp_talk_send(talk, m); /* Without an answer, the time ends it. */
  s->serial = m->serial;
}

/* One of the next VM, or the round's end. */
static void snapshots_next(struct ljp_join_snapshots *s, struct ljp_talk *talk)
{
  enum { STRING_BYTES = 64 };
  struct ljp_nameless file;
  while (s->next < s->count) {
    uint32_t vm = s->vms[s->next++];
    struct ljp_join_message m = {
        .type = LJP_JOIN_HEAP, .number = {vm, STRING_BYTES, 0, 1}, .fds = 1};
    if (ljp_nameless_open(&file, s->command) >= 0)
      continue; /* It has said why. */
    m.fd[0] = file.fd;
    s->step = LJP_SNAPSHOTS_TAKES;
    snapshots_ask(s, talk, &m);
    close(file.fd);
    return;
  }
  s->step = LJP_SNAPSHOTS_IDLE;
}

static void snapshots_round(struct ljp_join_snapshots *s, struct ljp_talk *talk)
{
  struct ljp_join_message m = {.type = LJP_JOIN_VMS};
  s->step = LJP_SNAPSHOTS_ASKS;
  s->count = s->next = 0;
  snapshots_ask(s, talk, &m);
}

void ljp_join_snapshots_turn(struct ljp_join_snapshots *s,
                             struct ljp_talk *talk)
{
  uint64_t now = snapshots_now_ms();
  bool due = s->due_ms && now >= s->due_ms;
  if (due)
    s->due_ms = now + s->every_ms;
  if (due && s->step == LJP_SNAPSHOTS_IDLE) {
    snapshots_round(s, talk);
  } else if (s->step != LJP_SNAPSHOTS_IDLE &&
             now - s->since_ms >= snapshots_patience_ms(s)) {
    ljp_command_note(s->command,
                     "%s: a heap snapshot is not complete after "
                     "%" PRIu64 " seconds",
                     talk->name, (now - s->since_ms) / 1000);
    s->step = LJP_SNAPSHOTS_IDLE;
  }
}

void ljp_join_snapshots_last(struct ljp_join_snapshots *s,
                             struct ljp_talk *talk)
{
  s->due_ms = 0;
  if (s->last)
    snapshots_round(s, talk);
  s->last = false;
}

/* Reads the numbers of the VMs. */
static void snapshots_list(struct ljp_join_snapshots *s, struct ljp_talk *talk)
{
  char text[LJP_JOIN_MESSAGE_BYTES], *at = text, *end;
  const uint64_t all = talk->message.number[0];
  ljp_join_text(&talk->message, 0, text, sizeof text);
  for (; s->count < LJP_SNAPSHOTS_VMS; at = end) {
    unsigned long number = strtoul(at, &end, 10);
    if (end == at || number > UINT32_MAX)
      break;
    s->vms[s->count++] = (uint32_t)number;
  }
  if (all > s->count)
    ljp_command_note(s->command,
                     "%s has %" PRIu64 " VMs: heap snapshots are taken of %u",
                     talk->name, all, s->count);
  snapshots_next(s, talk);
}

/* The file says so, too. */
static void snapshots_failed(const struct ljp_join_snapshots *s,
                             const struct ljp_talk *talk)
{
  char why[600];
  ljp_join_text(&talk->message, 0, why, sizeof why);
  ljp_command_note(s->command, "%s: no heap snapshot: %s", talk->name, why);
}

void ljp_join_snapshots_heard(struct ljp_join_snapshots *s,
                              struct ljp_talk *talk)
{
  const struct ljp_join_message *m = &talk->message;
  if (s->step == LJP_SNAPSHOTS_IDLE || m->serial != s->serial)
    return;
  if (m->type == LJP_JOIN_ERROR) {
    snapshots_failed(s, talk);
    snapshots_next(s, talk);
  } else if (m->type == LJP_JOIN_VM_LIST && s->step == LJP_SNAPSHOTS_ASKS) {
    snapshots_list(s, talk);
  } else if (m->type == LJP_JOIN_HEAP_DONE && s->step == LJP_SNAPSHOTS_TAKES) {
    snapshots_next(s, talk);
  }
}
