/*
** Reads and judges answers. Called for bytes from the network.
*/
#include "tools/push/answer.h"

#include <tools/export/otlp.pb-c.h> /* Generated. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* Copies a value without white space around it, cut to the room. */
static void answer_copy(char *to, size_t room, const char *from, size_t len)
{
  while (len && (*from == ' ' || *from == '\t'))
    from++, len--;
  while (len && (from[len - 1] == ' ' || from[len - 1] == '\t' ||
                 from[len - 1] == '\r' || from[len - 1] == '\n'))
    len--;
  if (len >= room)
    len = room - 1;
  size_t n = 0;
  while (n < len && from[n]) { /* A NUL ends it. */
    to[n] = from[n];
    n++;
  }
  to[n] = '\0';
}

void ljp_answer_header(struct ljp_answer *a, const char *line, size_t len)
{
  const struct {
    const char *name;
    char *to;
    size_t room;
  } wanted[] = {
      {"content-type", a->type, sizeof a->type},
      {"retry-after", a->retry_after, sizeof a->retry_after},
      {"location", a->location, sizeof a->location},
      {"grpc-status", a->grpc_status, sizeof a->grpc_status},
      {"grpc-message", a->grpc_message, sizeof a->grpc_message},
  };
  const char *colon = memchr(line, ':', len);
  if (len > 5 && memcmp(line, "HTTP/", 5) == 0) /* A 100 came before. */
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
      wanted[i].to[0] = '\0';
  if (!colon)
    return;
  size_t name = (size_t)(colon - line);
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
    if (strlen(wanted[i].name) == name &&
        strncasecmp(wanted[i].name, line, name) == 0)
      answer_copy(wanted[i].to, wanted[i].room, colon + 1, len - name - 1);
}

void ljp_answer_body(struct ljp_answer *a, const char *data, size_t len)
{
  size_t left = sizeof a->body - a->body_len;
  if (len > left) {
    len = left;
    a->body_cut = true;
  }
  memcpy(a->body + a->body_len, data, len);
  a->body_len += len;
}

/* Milliseconds to wait: a number of seconds, or an HTTP date. */
static uint64_t answer_retry_after(const char *text, int64_t wall_s)
{
  char *end;
  uint64_t seconds = 0;
  struct tm tm = {0};
  if (*text >= '0' && *text <= '9') {
    seconds = strtoull(text, &end, 10);
    if (*end)
      seconds = 0;
  } else if ((end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm)) &&
             !*end) {
    int64_t at = (int64_t)timegm(&tm);
    if (at > wall_s)
      seconds = (uint64_t)at - (uint64_t)wall_s;
  }
  return seconds < LJP_RETRY_AFTER_MOST_MS / 1000 ? seconds * 1000
                                                  : LJP_RETRY_AFTER_MOST_MS;
}

/* The beginning of the body on one line. */
static void answer_excerpt(const struct ljp_answer *a, char text[256])
{
  size_t n = 0, len = a->body_len < 240 ? a->body_len : 240;
  while (len && (a->body[len - 1] == '\n' || a->body[len - 1] == '\r'))
    len--;
  for (size_t i = 0; i < len; i++)
    text[n++] = a->body[i] && a->body[i] != '\n' && a->body[i] != '\r'
                    ? a->body[i]
                    : ' ';
  text[n] = '\0';
}

static enum ljp_verdict_kind answer_http_kind(long status,
                                              enum ljp_engine engine)
{
  /* Pyroscope's stores may have a profile of which one of them says such a thing. */
  if ((engine == LJP_ENGINE_PYROSCOPE || engine == LJP_ENGINE_INGEST) &&
      (status == 500 || status == 503))
    return LJP_VERDICT_UNKNOWN;
  if (status == 408 || status == 425 || status == 429)
    return LJP_VERDICT_RETRY;
  if (status == 401 || status == 403 || status == 404 || status == 405 ||
      status == 407 || status == 501 || status == 505 || status < 400)
    return LJP_VERDICT_WRONG;
  if (status >= 500)
    /* A proxy says 502 and 504 when the server behind it has not answered. */
    return status == 502 || status == 504 ? LJP_VERDICT_UNKNOWN
                                          : LJP_VERDICT_RETRY;
  return LJP_VERDICT_REFUSED;
}

static enum ljp_verdict_kind answer_grpc_kind(long status)
{
  switch (status) {
  case 3:  /* invalid argument */
  case 5:  /* not found */
  case 6:  /* already exists */
  case 9:  /* failed precondition */
  case 11: /* out of range */
    return LJP_VERDICT_REFUSED;
  case 7:  /* permission denied */
  case 12: /* unimplemented */
  case 16: /* unauthenticated */
    return LJP_VERDICT_WRONG;
  case 1:  /* cancelled */
  case 2:  /* unknown */
  case 4:  /* deadline exceeded */
  case 13: /* internal */
    return LJP_VERDICT_UNKNOWN;
  default:
    return LJP_VERDICT_RETRY;
  }
}

static bool answer_is_type(const struct ljp_answer *a, const char *type)
{
  size_t len = strlen(type);
  return strncasecmp(a->type, type, len) == 0 &&
         (!a->type[len] || strchr("+; ", a->type[len]));
}

/* A collector may take a request and refuse profiles in it. */
static void answer_judge_otlp(const struct ljp_answer *a, struct ljp_verdict *v)
{
  if (answer_is_type(a, "application/json") || !a->body_len)
    return;
  Ljp__Otlp__Response *response =
      ljp__otlp__response__unpack(NULL, a->body_len, (const uint8_t *)a->body);
  if (!response) {
    v->kind = LJP_VERDICT_UNKNOWN;
    snprintf(v->text, sizeof v->text, "the answer cannot be read");
    return;
  }
  const Ljp__Otlp__Partial *partial = response->partial_success;
  if (partial && partial->rejected_profiles > 0) {
    v->kind = LJP_VERDICT_REFUSED;
    snprintf(v->text, sizeof v->text, "the server refuses %lld profiles: %.*s",
             (long long)partial->rejected_profiles,
             (int)(partial->error_message.len < 256 ? partial->error_message.len
                                                    : 256),
             partial->error_message.len ? (char *)partial->error_message.data
                                        : "");
  }
  ljp__otlp__response__free_unpacked(response, NULL);
}

/* The judgement of an answer that the request was taken. */
static void answer_judge_done(const struct ljp_answer *a,
                              enum ljp_engine engine, struct ljp_verdict *v)
{
  static const char *const types[] = {
#define LJP_X(name, text, path, type) type,
      LJP_ENGINE_LIST(LJP_X)
#undef LJP_X
  };
  char *end;
  bool protobuf = answer_is_type(a, types[engine]) ||
                  (engine == LJP_ENGINE_OTLP &&
                   (answer_is_type(a, "application/protobuf") ||
                    answer_is_type(a, "application/json"))) ||
                  /* /ingest says nothing. */
                  (engine == LJP_ENGINE_INGEST && !a->body_len);
  v->kind = LJP_VERDICT_SENT;
  /* What takes a request and says no more about it: gateways, queues. */
  if (a->status != 200 && !protobuf)
    return;
  if (!protobuf) {
    v->kind = LJP_VERDICT_WRONG;
    snprintf(v->text, sizeof v->text,
             "the answer is not of this engine: its type is '%s', not '%s'",
             a->type, types[engine]);
  } else if (engine == LJP_ENGINE_PARCA) {
    long status = strtol(a->grpc_status, &end, 10);
    if (!*a->grpc_status || *end || status < 0) {
      v->kind = LJP_VERDICT_UNKNOWN;
      snprintf(v->text, sizeof v->text, "the answer has no gRPC status");
    } else if (status) {
      v->kind = answer_grpc_kind(status);
      snprintf(v->text, sizeof v->text, "the server says gRPC status %ld: %s",
               status, a->grpc_message);
    }
  } else if (engine == LJP_ENGINE_OTLP) {
    answer_judge_otlp(a, v);
  }
}

struct ljp_verdict ljp_answer_judge(const struct ljp_answer *a,
                                    enum ljp_engine engine, int64_t wall_s)
{
  struct ljp_verdict v = {.kind = LJP_VERDICT_WRONG};
  char excerpt[256];
  if (a->exchange != LJP_EXCHANGE_DONE) {
    v.kind = a->exchange == LJP_EXCHANGE_UNSENT   ? LJP_VERDICT_RETRY
             : a->exchange == LJP_EXCHANGE_BROKEN ? LJP_VERDICT_UNKNOWN
                                                  : LJP_VERDICT_WRONG;
    snprintf(v.text, sizeof v.text, "%s", a->error);
    return v;
  }
  const bool taken = a->status == 202 || a->status == 204;
  if (a->status == 200 || (taken && engine == LJP_ENGINE_OTLP)) {
    answer_judge_done(a, engine, &v);
  } else if (a->status >= 300 && a->status < 400) {
    snprintf(v.text, sizeof v.text,
             "the server answers %ld and points to '%s', which is not "
             "followed: give the right URL",
             a->status, a->location);
  } else {
    answer_excerpt(a, excerpt);
    v.kind = answer_http_kind(a->status, engine);
    snprintf(v.text, sizeof v.text, "the server answers %ld%s%s", a->status,
             *excerpt ? ": " : "", excerpt);
  }
  if (v.kind == LJP_VERDICT_RETRY || v.kind == LJP_VERDICT_UNKNOWN)
    v.wait_ms = answer_retry_after(a->retry_after, wall_s);
  return v;
}
