/*
** Inputs. Any thread; an input belongs to one reader.
*/
#include "parsers/stream/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static ssize_t input_read_fd(struct ljp_input *input, void *buf, size_t n)
{
  for (;;) {
    ssize_t got = read(input->fd, buf, n);
    if (got >= 0)
      return got;
    if (errno == EAGAIN) { /* A pipe that was made non-blocking. */
      struct pollfd wait = {.fd = input->fd, .events = POLLIN};
      poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return -1;
    }
  }
}

static ssize_t input_read_memory(struct ljp_input *input, void *buf, size_t n)
{
  if (n > input->left)
    n = input->left;
  if (n)
    memcpy(buf, input->data, n);
  input->data += n;
  input->left -= n;
  return (ssize_t)n;
}

/* Why such a file may not be read; NULL: it may. */
static const char *input_refused_kind(const struct stat *st)
{
  switch (st->st_mode & S_IFMT) {
  case S_IFREG:
  case S_IFIFO:
    return NULL;
  case S_IFDIR:
    return "is a directory";
  case S_IFCHR:
    return "is a character device, not a file or pipe";
  case S_IFBLK:
    return "is a block device, not a file or pipe";
  case S_IFSOCK:
    return "is a socket, not a file or pipe";
  default:
    return "is not a file or pipe";
  }
}

static enum ljp_status input_system_error(char *error)
{
  snprintf(error, LJP_INPUT_ERROR_BYTES, "%s", strerror(errno));
  return LJP_ERR_IO;
}

/* Whether a regular file is, by its name or first bytes, a Lua script. */
static bool input_is_script(const char *path, int fd)
{
  char head[64];
  size_t len = strlen(path);
  ssize_t n = pread(fd, head, sizeof head - 1, 0);
  head[n > 0 ? n : 0] = '\0';
  head[strcspn(head, "\n")] = '\0';
  return (len > 4 && strcmp(path + len - 4, ".lua") == 0) ||
         strncmp(head, "\033LJ", 3) == 0 ||
         (strncmp(head, "#!", 2) == 0 && strstr(head, "lua"));
}

/* Checks the file's type before opening it, since opening a device may block
** or have effects, and again afterwards, since the name may have come to mean
** another file. */
enum ljp_status ljp_input_open(struct ljp_input *input, const char *path,
                               char error[LJP_INPUT_ERROR_BYTES])
{
  struct stat st;
  const char *refused;
  bool is_stdin = strcmp(path, "-") == 0;
  *input = (struct ljp_input){.read = input_read_fd, .fd = -1};
  if (!is_stdin) {
    if (stat(path, &st) != 0)
      return input_system_error(error);
    if ((refused = input_refused_kind(&st)))
      goto refuse;
  }
  input->fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
  if (input->fd < 0)
    return input_system_error(error);
  if (fstat(input->fd, &st) != 0) {
    enum ljp_status status = input_system_error(error);
    ljp_input_close(input);
    return status;
  }
  if ((refused = input_refused_kind(&st)))
    goto refuse;
  if (S_ISREG(st.st_mode) && input_is_script(path, input->fd))
    input->script = path;
  return LJP_OK;

refuse:
  ljp_input_close(input);
  snprintf(error, LJP_INPUT_ERROR_BYTES, "%s", refused);
  return LJP_ERR_USE;
}

void ljp_input_memory(struct ljp_input *input, const void *data, size_t size)
{
  *input = (struct ljp_input){
      .read = input_read_memory, .fd = -1, .data = data, .left = size};
}

static ssize_t input_read_peeked(struct ljp_input *input, void *buf, size_t n)
{
  size_t left = input->peeked_end - input->peeked_at;
  if (!left) {
    input->read = input->later;
    return input->read(input, buf, n);
  }
  if (n > left)
    n = left;
  memcpy(buf, input->peeked + input->peeked_at, n);
  input->peeked_at += (unsigned)n;
  return (ssize_t)n;
}

ssize_t ljp_input_peek(struct ljp_input *input)
{
  size_t have = 0;
  ssize_t got;
  do {
    got = input->read(input, input->peeked + have, sizeof input->peeked - have);
    if (got < 0)
      return -1;
    have += (size_t)got;
  } while (got && have < sizeof input->peeked);
  input->peeked_end = (unsigned)have;
  input->later = input->read;
  input->read = input_read_peeked;
  return (ssize_t)have;
}

void ljp_input_close(struct ljp_input *input)
{
  if (input->fd > STDIN_FILENO)
    close(input->fd);
  input->fd = -1;
}
