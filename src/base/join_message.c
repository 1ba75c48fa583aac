/*
** See join_message.h.
*/
#include "src/base/join_message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct kind {
  uint16_t number;
  enum ljp_join_side side;
  uint8_t numbers, texts, fds_least, fds_most;
} message_kinds[] = {
#define LJP_X(name, number, side, numbers, texts, least, most)                 \
  {number, LJP_JOIN_SIDE_##side, numbers, texts, least, most},
    LJP_JOIN_LIST(LJP_X)
#undef LJP_X
};

#define LJP_X(name, number, side, numbers, texts, least, most)                 \
  _Static_assert((numbers) <= LJP_JOIN_NUMBERS && (texts) <= LJP_JOIN_TEXTS && \
                     (most) <= LJP_JOIN_FDS,                                   \
                 "a message with too many fields");
LJP_JOIN_LIST(LJP_X)
#undef LJP_X

static const struct kind *message_kind(unsigned number)
{
  for (size_t i = 0; i < sizeof message_kinds / sizeof *message_kinds; i++)
    if (message_kinds[i].number == number)
      return &message_kinds[i];
  return NULL;
}

/* -- Bytes ----------------------------------------------------------------- */
static void message_put(char **at, uint64_t value, unsigned bytes)
{
  for (unsigned i = 0; i < bytes; i++)
    *(*at)++ = (char)(unsigned char)(value >> (8 * i));
}

static uint64_t message_get(const char *at, unsigned bytes)
{
  uint64_t value = 0;
  for (unsigned i = 0; i < bytes; i++)
    value |= (uint64_t)(unsigned char)at[i] << (8 * i);
  return value;
}

size_t ljp_join_pack(const struct ljp_join_message *m,
                     char out[LJP_JOIN_MESSAGE_BYTES])
{
  const struct kind *kind = message_kind(m->type);
  size_t bytes = LJP_JOIN_HEAD_BYTES;
  if (!kind)
    return 0;
  bytes += 8u * kind->numbers;
  for (unsigned i = 0; i < kind->texts; i++)
    bytes += 2u + m->length[i];
  if (bytes > LJP_JOIN_MESSAGE_BYTES)
    return 0;
  char *at = out;
  message_put(&at, m->type, 2);
  message_put(&at, LJP_JOIN_PROTOCOL, 2);
  message_put(&at, m->serial, 4);
  message_put(&at, bytes - LJP_JOIN_HEAD_BYTES, 4);
  for (unsigned i = 0; i < kind->numbers; i++)
    message_put(&at, m->number[i], 8);
  for (unsigned i = 0; i < kind->texts; i++) {
    message_put(&at, m->length[i], 2);
    if (m->length[i])
      memcpy(at, m->text[i], m->length[i]);
    at += m->length[i];
  }
  return bytes;
}

/* -- The parser ------------------------------------------------------------ */
/* The bytes of the character that begins here; 0: it is none, or a zero. */
static size_t message_character(const unsigned char *at, size_t left)
{
  static const struct {
    unsigned char mask, first;
    uint32_t least;
  } forms[] = {{0x80, 0x00, 1},
               {0xe0, 0xc0, 0x80},
               {0xf0, 0xe0, 0x800},
               {0xf8, 0xf0, 0x10000}};
  for (size_t more = 0; more < sizeof forms / sizeof *forms; more++) {
    if ((at[0] & forms[more].mask) != forms[more].first)
      continue;
    uint32_t code = at[0] & (unsigned char)~forms[more].mask;
    if (more >= left)
      return 0;
    for (size_t i = 1; i <= more; i++) {
      if ((at[i] & 0xc0) != 0x80)
        return 0;
      code = code << 6 | (at[i] & 0x3fu);
    }
    bool surrogate = code >= 0xd800 && code < 0xe000;
    return code < forms[more].least || surrogate || code > 0x10ffff ? 0
                                                                    : more + 1;
  }
  return 0;
}

static bool message_is_text(const char *text, size_t length)
{
  for (size_t at = 0, n; at < length; at += n)
    if (!(n = message_character((const unsigned char *)text + at, length - at)))
      return false;
  return true;
}

const char *ljp_join_parse(struct ljp_join_message *m, enum ljp_join_side from,
                           const char *data, size_t bytes)
{
  if (bytes < LJP_JOIN_HEAD_BYTES || bytes > LJP_JOIN_MESSAGE_BYTES)
    return "a message of an impossible size";
  const struct kind *kind = message_kind((unsigned)message_get(data, 2));
  if (message_get(data + 2, 2) != LJP_JOIN_PROTOCOL)
    return "another version of the protocol";
  if (!kind || kind->side != from)
    return "a message of an unknown type";
  m->type = (enum ljp_join_type)kind->number;
  m->serial = (uint32_t)message_get(data + 4, 4);
  const char *at = data + LJP_JOIN_HEAD_BYTES, *end = data + bytes;
  if (message_get(data + 8, 4) != (uint64_t)(end - at))
    return "a message whose length is wrong";
  if (m->fds < kind->fds_least || m->fds > kind->fds_most)
    return "a wrong number of descriptors";
  if ((size_t)(end - at) < 8u * kind->numbers)
    return "a message that is too short";
  for (unsigned i = 0; i < kind->numbers; i++, at += 8)
    m->number[i] = message_get(at, 8);
  for (unsigned i = 0; i < kind->texts; i++) {
    if (end - at < 2)
      return "a message that is too short";
    m->length[i] = (uint16_t)message_get(at, 2);
    m->text[i] = at += 2;
    if (end - at < m->length[i])
      return "a text that is longer than its message";
    if (!message_is_text(at, m->length[i]))
      return "a text that is not UTF-8";
    at += m->length[i];
  }
  return at == end ? NULL : "a message that is too long";
}

/* -- The socket ------------------------------------------------------------ */
union control {
  char room[CMSG_SPACE(LJP_JOIN_FDS * sizeof(int))];
  struct cmsghdr align;
};

int ljp_join_send(int socket, const struct ljp_join_message *m)
{
  char data[LJP_JOIN_MESSAGE_BYTES];
  union control control;
  struct iovec part = {data, ljp_join_pack(m, data)};
  struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
  if (!part.iov_len)
    return EMSGSIZE;
  if (m->fds) {
    size_t bytes = m->fds * sizeof(int);
    memset(&control, 0, sizeof control);
    header.msg_control = &control;
    header.msg_controllen = CMSG_SPACE(bytes);
    struct cmsghdr *c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(c), m->fd, bytes);
  }
  while (sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
    if (errno != EINTR)
      return errno;
  return 0;
}

static void message_take_fds(struct ljp_join_message *m, struct msghdr *header)
{
  m->fds = 0;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c;
       c = CMSG_NXTHDR(header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
        c->cmsg_len < CMSG_LEN(0))
      continue;
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int fd;
      memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      if (m->fds < LJP_JOIN_FDS)
        m->fd[m->fds++] = fd;
      else
        close(fd);
    }
  }
}

int ljp_join_receive(int socket, enum ljp_join_side from,
                     char room[LJP_JOIN_MESSAGE_BYTES],
                     struct ljp_join_message *m, const char **wrong)
{
  union control control;
  struct iovec part = {room, LJP_JOIN_MESSAGE_BYTES};
  struct msghdr header = {.msg_iov = &part,
                          .msg_iovlen = 1,
                          .msg_control = &control,
                          .msg_controllen = sizeof control};
  ssize_t n;
  memset(m, 0, sizeof *m);
  while ((n = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) < 0)
    if (errno != EINTR)
      return errno;
  message_take_fds(m, &header);
  if (!n && !m->fds)
    return ECONNRESET;
  *wrong = header.msg_flags & MSG_TRUNC ? "a message that is too long"
           : header.msg_flags & MSG_CTRUNC
               ? "too many descriptors"
               : ljp_join_parse(m, from, room, (size_t)n);
  if (!*wrong)
    return 0;
  while (m->fds)
    close(m->fd[--m->fds]);
  return EPROTO;
}

void ljp_join_text(const struct ljp_join_message *m, unsigned which, char *out,
                   size_t room)
{
  size_t len = m->length[which] < room ? m->length[which] : room - 1;
  if (len)
    memcpy(out, m->text[which], len);
  out[len] = '\0';
}
