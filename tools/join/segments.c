/*
** See segments.h. A segment has its name before the program gets it, so nothing
** that was written is lost if this process is killed.
*/
#include "tools/join/segments.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/newfile.h"
#include "tools/shared/command.h"

void ljp_join_segments_init(struct ljp_join_segments *s, const char *command,
                            const char *path, uint32_t keep)
{
  *s = (struct ljp_join_segments){
      .command = command, .path = path, .keep = keep, .fd = -1};
}

static void segments_path(const struct ljp_join_segments *s, uint32_t segment,
                          char out[PATH_MAX + 16])
{
  if (segment)
    snprintf(out, PATH_MAX + 16, "%s.s%u", s->path, segment);
  else
    snprintf(out, PATH_MAX + 16, "%s", s->path);
}

/* An older segment of this name is replaced, as by a program that makes it
** itself. Returns 0 or an errno. */
static int segments_make(const char *path, int *fd)
{
  struct ljp_target found;
  struct ljp_newfile new;
  ljp_newfile_init(&new);
  int error = ljp_target_find(&found, path);
  if (error)
    return error;
  if (found.there && !S_ISREG(found.st.st_mode)) {
    close(found.dir);
    error = EEXIST;
  } else {
    error = ljp_newfile_open(&new, &found, fd);
  }
  free(found.path);
  if (error)
    return error;
  error = ljp_newfile_show(&new, *fd, true, NULL);
  ljp_newfile_discard(&new);
  if (error) {
    close(*fd);
    *fd = -1;
  }
  return error;
}

/* Is the last segment that was made still empty? */
static bool segments_unused(const struct ljp_join_segments *s)
{
  struct stat st;
  return s->fd >= 0 && !fstat(s->fd, &st) && st.st_size == 0;
}

static void segments_give(struct ljp_join_segments *s, struct ljp_talk *talk)
{
  char path[PATH_MAX + 16];
  struct ljp_join_message m = {
      .type = LJP_JOIN_SEGMENT, .number = {s->given + 1}, .fds = 1};
  int fd = -1;
  segments_path(s, s->given + 1, path);
  int error = segments_make(path, &fd);
  if (error) {
    if (!s->told)
      ljp_command_note(s->command,
                       "%s: %s: the file before goes on until it can be made",
                       path, strerror(error));
    s->told = true;
    return;
  }
  if (s->fd >= 0)
    close(s->fd);
  m.fd[0] = s->fd = fd;
  s->given++;
  s->wanted = s->told = false;
  ljp_talk_send(talk, &m);
}

/* Removes what is not to be kept, unless something else has its name now. */
static void segments_limit(struct ljp_join_segments *s)
{
  char path[PATH_MAX + 16];
  struct stat st;
  for (; s->keep && s->removed + s->keep <= s->begun; s->removed++) {
    segments_path(s, s->removed, path);
    if (!lstat(path, &st) && S_ISREG(st.st_mode))
      unlink(path);
  }
}

void ljp_join_segments_heard(struct ljp_join_segments *s, struct ljp_talk *talk)
{
  uint64_t begun = talk->message.number[0], wanted = talk->message.number[1];
  if (begun > s->given || (begun > s->begun && segments_unused(s)))
    return; /* That is not so. */
  s->begun = (uint32_t)begun;
  segments_limit(s);
  if (s->begun == s->given)
    s->wanted = wanted == s->begun + UINT64_C(1);
  ljp_join_segments_retry(s, talk);
}

void ljp_join_segments_retry(struct ljp_join_segments *s, struct ljp_talk *talk)
{
  if (s->wanted)
    segments_give(s, talk);
}

void ljp_join_segments_end(struct ljp_join_segments *s, bool over)
{
  char path[PATH_MAX + 16];
  struct stat st, now;
  if (s->fd < 0)
    return;
  segments_path(s, s->given, path);
  if (!segments_unused(s)) {
    s->begun = s->given;
    segments_limit(s);
  } else if (over && !fstat(s->fd, &st) && !stat(path, &now) &&
             now.st_ino == st.st_ino && now.st_dev == st.st_dev)
    unlink(path);
  close(s->fd);
  s->fd = -1;
}
