/* Fuzz target: what ljprof push reads. The first byte chooses: an answer of each
** engine from lines of headers and a body, a journal, the file of a request.
** Texts stay within their room and end, waits within the limit; what is read from
** a journal is found again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/push/spool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
  if (!condition)
    abort();
}

static void read_answer(const uint8_t *data, size_t size)
{
  static struct ljp_answer a;
  const char *text = (const char *)data, *end = text + size;
  if (size < 3)
    return;
  memset(&a, 0, sizeof a);
  a.exchange = (enum ljp_exchange)(data[0] % 4);
  memset(a.error, 'e', sizeof a.error - 1);
  a.status = data[1] < 100 ? 200 : data[1] * 3;
  for (text += 2; text < end;) {
    const char *line = memchr(text, '\n', (size_t)(end - text));
    size_t len = line ? (size_t)(line - text) : (size_t)(end - text);
    if (!len)
      break;
    ljp_answer_header(&a, text, len);
    text += len + (line != NULL);
  }
  if (text < end)
    ljp_answer_body(&a, text + 1, (size_t)(end - text - 1));
  check(memchr(a.type, 0, sizeof a.type) != NULL);
  check(memchr(a.grpc_message, 0, sizeof a.grpc_message) != NULL);
  check(memchr(a.location, 0, sizeof a.location) != NULL);
  check(a.body_len <= sizeof a.body);
  for (int e = 0; e < LJP_ENGINE_COUNT; e++) {
    struct ljp_verdict v =
        ljp_answer_judge(&a, (enum ljp_engine)e, (int64_t)data[0] << 24);
    check(memchr(v.text, 0, sizeof v.text) != NULL);
    check(v.wait_ms <= LJP_RETRY_AFTER_MOST_MS);
    check((v.kind == LJP_VERDICT_SENT) == !*v.text);
    check(v.kind != LJP_VERDICT_SENT ||
          (a.exchange == LJP_EXCHANGE_DONE && a.status == 200));
  }
}

static void read_journal(const uint8_t *data, size_t size)
{
  struct ljp_journal j = {.fd = -1};
  if (!ljp_journal_read(&j, data, size)) {
    check(j.count + j.damaged <= size / LJP_JOURNAL_BYTES);
    for (uint32_t i = 0; i < j.count; i++) {
      check(ljp_journal_find(&j, j.entries[i].id) == &j.entries[i]);
      check(j.entries[i].what < LJP_JOURNAL_WHATS);
      check(j.entries[i].number <= j.last);
    }
  }
  ljp_journal_close(&j);
}

static void read_request(const uint8_t *data, size_t size)
{
  struct ljp_request r;
  if (ljp_request_read(data, size, &r))
    check(r.len + LJP_REQUEST_HEAD == size && r.number &&
          memchr(r.source, 0, sizeof r.source) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (!size)
    return 0;
  uint8_t *copy = malloc(size); /* Its end is guarded under ASan. */
  if (!copy)
    return 0;
  memcpy(copy, data + 1, size - 1);
  if (data[0] % 3 == 0)
    read_answer(copy, size - 1);
  else if (data[0] % 3 == 1)
    read_journal(copy, size - 1);
  else
    read_request(copy, size - 1);
  free(copy);
  return 0;
}
