/*
** Answer: what a server said to a request, and what that means. All of it comes
** from the network: it is cut to the room here, and nothing of it is believed
** before it is checked. One thread.
*/
#ifndef LJP_TOOLS_PUSH_ANSWER_H
#define LJP_TOOLS_PUSH_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LJP_ENGINE_LIST(_)                                                     \
  _(PYROSCOPE, "pyroscope", "/push.v1.PusherService/Push",                     \
    "application/proto")                                                       \
  _(PARCA, "parca",                                                            \
    "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw",               \
    "application/grpc")                                                        \
  _(OTLP, "otlp", "/v1development/profiles", "application/x-protobuf")         \
  /* Pyroscope's older API (--api ingest). */                                  \
  _(INGEST, "pyroscope", "/ingest", "application/octet-stream")

enum ljp_engine {
#define LJP_X(name, text, path, type) LJP_ENGINE_##name,
  LJP_ENGINE_LIST(LJP_X)
#undef LJP_X
      LJP_ENGINE_COUNT
};

/* How the exchange went, before the answer is read. */
enum ljp_exchange {
  LJP_EXCHANGE_DONE,
  LJP_EXCHANGE_UNSENT,  /* No connection: the server has nothing of it. */
  LJP_EXCHANGE_BROKEN,  /* Time-out, reset, garbage: the server may have it. */
  LJP_EXCHANGE_REFUSED, /* TLS or the URL: trying again is of no use. */
};

struct ljp_answer {
  enum ljp_exchange exchange;
  char error[256]; /* Unless the exchange is done. */
  long status;     /* HTTP. */
  char type[64], retry_after[64], location[256];
  char grpc_status[8], grpc_message[200];
  char body[4096];
  size_t body_len;
  bool body_cut;
};

/* Takes a header or a trailer: a line with or without its end. */
void ljp_answer_header(struct ljp_answer *a, const char *line, size_t len);
void ljp_answer_body(struct ljp_answer *a, const char *data, size_t len);

enum ljp_verdict_kind {
  LJP_VERDICT_SENT,    /* The server has it. */
  LJP_VERDICT_REFUSED, /* The server does not want this request: no retry. */
  LJP_VERDICT_WRONG,   /* Nothing can be pushed there: address, token, TLS. */
  LJP_VERDICT_RETRY,   /* Later; the server has not taken it. */
  LJP_VERDICT_UNKNOWN, /* Later; whether the server has it is not known. */
};

struct ljp_verdict {
  enum ljp_verdict_kind kind;
  uint64_t wait_ms; /* At least, as the server asks. */
  char text[768];   /* Why, unless SENT; bytes of the server may be in it. */
};

/* wall_s: the time since 1970, for dates in Retry-After. */
struct ljp_verdict ljp_answer_judge(const struct ljp_answer *a,
                                    enum ljp_engine engine, int64_t wall_s);

/* The longest time that a server may ask us to wait. */
#define LJP_RETRY_AFTER_MOST_MS (UINT64_C(3600) * 1000)

#endif
