/*
** Http: sends one request and collects the answer, by libcurl. Redirects are not
** followed, so that no token goes elsewhere, and certificates are verified. One
** thread.
*/
#ifndef LJP_TOOLS_PUSH_HTTP_H
#define LJP_TOOLS_PUSH_HTTP_H

#include "tools/push/answer.h"

struct ljp_http {
  enum ljp_engine engine;
  const char *url;        /* As given. */
  const char *ca_file;    /* NULL: the system's. */
  const char *token_file; /* NULL: none. Read for each request. */
  const char *tenant;     /* NULL: none. */
  long timeout_ms;
  char *target; /* From here hidden. */
  bool local;   /* The target is this machine. */
  void *curl;
};

/* Checks the URL. false: *why is a sentence. */
bool ljp_http_open(struct ljp_http *http, const char **why);
void ljp_http_close(struct ljp_http *http);

/* Sends a request. `a` is filled in any case. */
void ljp_http_send(struct ljp_http *http, const uint8_t *body, size_t len,
                   struct ljp_answer *a);

#endif
