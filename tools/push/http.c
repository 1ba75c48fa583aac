/*
** Requests by libcurl. Each request has a connection of its own: when a kept one
** breaks, libcurl sends the request again by itself, and the server may take it
** twice.
*/
#include "tools/push/http.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/status.h"

enum { TOKEN_BYTES = 16384, CONNECT_TIMEOUT_MS = 10000 };

static const struct {
  const char *path, *type;
} http_engines[] = {
#define LJP_X(name, text, path, type) {path, type},
    LJP_ENGINE_LIST(LJP_X)
#undef LJP_X
};

/* Whether an address is this machine, where no network sees a token. A name that
** begins like such an address may be anything. */
static bool http_is_local(const char *host)
{
  struct in_addr address;
  return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
         (inet_pton(AF_INET, host, &address) == 1 &&
          ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET);
}

static const char *http_check(struct ljp_http *http, CURLU *u)
{
  char *part = NULL;
  const char *why = NULL;
  if (curl_url_set(u, CURLUPART_URL, http->url, 0) != CURLUE_OK)
    return "this is not a URL: http://HOST:PORT or https://HOST expected";
  if (curl_url_get(u, CURLUPART_USER, &part, 0) == CURLUE_OK)
    why = "a URL with a user name is not taken: use --token-file";
  curl_free(part);
  part = NULL;
  if (!why && (curl_url_get(u, CURLUPART_QUERY, &part, 0) == CURLUE_OK ||
               curl_url_get(u, CURLUPART_FRAGMENT, &part, 0) == CURLUE_OK))
    why = "a URL with '?' or '#' is not taken";
  curl_free(part);
  part = NULL;
  if (why || curl_url_get(u, CURLUPART_SCHEME, &part, 0) != CURLUE_OK)
    return why ? why : "this is not a URL";
  bool plain = strcmp(part, "http") == 0;
  if (!plain && strcmp(part, "https") != 0)
    why = "only http:// and https:// are known";
  curl_free(part);
  if (why || curl_url_get(u, CURLUPART_HOST, &part, 0) != CURLUE_OK)
    return why ? why : "this URL has no host";
  http->local = http_is_local(part);
  if (plain && http->token_file && !http->local)
    why = "a token is not sent over http:// to another machine: use https://";
  curl_free(part);
  return why;
}

/* Appends the path of the engine's API, unless the URL ends with it. */
static bool http_set_path(struct ljp_http *http, CURLU *u)
{
  char *path = NULL, *whole = NULL, *url = NULL;
  const char *more = http_engines[http->engine].path;
  if (curl_url_get(u, CURLUPART_PATH, &path, 0) != CURLUE_OK)
    return false;
  size_t len = strlen(path), end = strlen(more);
  bool there = len >= end && strcmp(path + len - end, more) == 0;
  while (!there && len && path[len - 1] == '/')
    path[--len] = '\0';
  if (asprintf(&whole, "%s%s", path, there ? "" : more) < 0)
    whole = NULL;
  curl_free(path);
  if (whole && curl_url_set(u, CURLUPART_PATH, whole, 0) == CURLUE_OK &&
      curl_url_get(u, CURLUPART_URL, &url, 0) == CURLUE_OK)
    http->target = strdup(url);
  free(whole);
  curl_free(url);
  return http->target != NULL;
}

bool ljp_http_open(struct ljp_http *http, const char **why)
{
  *why = "out of memory";
  if (curl_global_init(CURL_GLOBAL_DEFAULT))
    return false;
  CURLU *u = curl_url();
  const char *wrong = u ? http_check(http, u) : *why;
  if (wrong)
    *why = wrong;
  bool ok = !wrong && http_set_path(http, u) &&
            (http->curl = curl_easy_init()) != NULL;
  curl_url_cleanup(u);
  return ok;
}

void ljp_http_close(struct ljp_http *http)
{
  curl_easy_cleanup(http->curl);
  free(http->target);
  curl_global_cleanup();
}

/* Reads the token: one line of visible characters. */
static const char *http_read_token(const char *path, char *token, size_t room)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, token, room - 1);
  const char *why = n < 0 ? ljp_errno_text(errno) : NULL;
  if (fd >= 0)
    close(fd);
  if (why || n < 0)
    return why ? why : "cannot be read";
  while (n && (token[n - 1] == '\n' || token[n - 1] == '\r'))
    n--;
  token[n] = '\0';
  if (n == 0)
    return "is empty";
  if ((size_t)n == room - 1)
    return "is too long for a token";
  for (ssize_t i = 0; i < n; i++)
    if (token[i] <= ' ' || token[i] > '~')
      return "holds more than one word: a token expected";
  return NULL;
}

static bool http_add(struct curl_slist **list, const char *name,
                     const char *value)
{
  char *line = NULL;
  struct curl_slist *more = NULL;
  if (asprintf(&line, "%s: %s", name, value) >= 0) {
    more = curl_slist_append(*list, line);
    explicit_bzero(line, strlen(line));
    free(line);
  }
  if (more)
    *list = more;
  return more != NULL;
}

/* For /ingest, the first line of a request is the query of the URL. */
static char *http_url(const struct ljp_http *http, const uint8_t **body,
                      size_t *len)
{
  char *url = NULL;
  const uint8_t *end =
      http->engine == LJP_ENGINE_INGEST ? memchr(*body, '\n', *len) : NULL;
  if (!end)
    return strdup(http->target);
  if (asprintf(&url, "%s?%.*s", http->target, (int)(end - *body),
               (const char *)*body) < 0)
    return NULL;
  *len -= (size_t)(end + 1 - *body);
  *body = end + 1;
  return url;
}

/* NULL, or why there can be no request. */
static const char *http_headers(struct ljp_http *http, struct curl_slist **list,
                                char *text, size_t room)
{
  static char token[TOKEN_BYTES], bearer[TOKEN_BYTES + 16];
  bool ok = http_add(list, "Content-Type", http_engines[http->engine].type) &&
            http_add(list, "User-Agent", "ljprof") &&
            http_add(list, "Expect", "");
  if (http->engine == LJP_ENGINE_PYROSCOPE)
    ok = ok && http_add(list, "Connect-Protocol-Version", "1");
  if (http->engine == LJP_ENGINE_PARCA)
    ok = ok && http_add(list, "TE", "trailers");
  if (http->tenant)
    ok = ok && http_add(list, "X-Scope-OrgID", http->tenant);
  if (http->token_file) {
    const char *why = http_read_token(http->token_file, token, sizeof token);
    if (why) {
      snprintf(text, room, "the token file '%s': %s", http->token_file, why);
      return text;
    }
    snprintf(bearer, sizeof bearer, "Bearer %s", token);
    ok = ok && http_add(list, "Authorization", bearer);
    explicit_bzero(token, sizeof token);
    explicit_bzero(bearer, sizeof bearer);
  }
  return ok ? NULL : "out of memory";
}

static size_t http_take_header(char *data, size_t size, size_t count, void *ctx)
{
  ljp_answer_header(ctx, data, size * count);
  return size * count;
}

static size_t http_take_body(char *data, size_t size, size_t count, void *ctx)
{
  struct ljp_answer *a = ctx;
  ljp_answer_body(a, data, size * count);
  return a->body_cut ? 0 : size * count; /* Nobody reads more: it ends. */
}

static enum ljp_exchange http_exchange(CURLcode code)
{
  switch (code) {
  case CURLE_OK:
    return LJP_EXCHANGE_DONE;
  case CURLE_COULDNT_RESOLVE_HOST:
  case CURLE_COULDNT_RESOLVE_PROXY:
  case CURLE_COULDNT_CONNECT:
  case CURLE_SSL_CONNECT_ERROR:
    return LJP_EXCHANGE_UNSENT;
  case CURLE_URL_MALFORMAT:
  case CURLE_PEER_FAILED_VERIFICATION:
  case CURLE_SSL_CACERT_BADFILE:
  case CURLE_SSL_CERTPROBLEM:
  case CURLE_SSL_CIPHER:
  case CURLE_SSL_ISSUER_ERROR:
    return LJP_EXCHANGE_REFUSED;
  default:
    return LJP_EXCHANGE_BROKEN;
  }
}

static bool http_set(struct ljp_http *http, const char *url,
                     struct curl_slist *headers, const uint8_t *body,
                     size_t len, struct ljp_answer *a, char *error)
{
  CURL *c = http->curl;
  long version = CURL_HTTP_VERSION_NONE;
  if (http->engine == LJP_ENGINE_PARCA)
    version = strncmp(http->target, "https", 5) == 0
                  ? CURL_HTTP_VERSION_2TLS
                  : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
  curl_easy_reset(c);
  *error = '\0';
#define SET(option, value) (curl_easy_setopt(c, option, value) == CURLE_OK)
  return SET(CURLOPT_URL, url) && SET(CURLOPT_PROTOCOLS_STR, "http,https") &&
         SET(CURLOPT_FOLLOWLOCATION, 0L) && SET(CURLOPT_NOSIGNAL, 1L) &&
         /* A proxy is on the network, and knows no way back. */
         (!http->local || SET(CURLOPT_NOPROXY, "*")) &&
         SET(CURLOPT_SSL_VERIFYPEER, 1L) && SET(CURLOPT_SSL_VERIFYHOST, 2L) &&
         (!http->ca_file || (SET(CURLOPT_CAINFO, http->ca_file) &&
                             SET(CURLOPT_CAPATH, (char *)NULL))) &&
         SET(CURLOPT_FRESH_CONNECT, 1L) && SET(CURLOPT_FORBID_REUSE, 1L) &&
         SET(CURLOPT_HTTP_VERSION, version) && SET(CURLOPT_POST, 1L) &&
         SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len) &&
         SET(CURLOPT_POSTFIELDS, (const char *)body) &&
         SET(CURLOPT_HTTPHEADER, headers) &&
         SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS) &&
         SET(CURLOPT_TIMEOUT_MS, http->timeout_ms) &&
         SET(CURLOPT_HEADERFUNCTION, http_take_header) &&
         SET(CURLOPT_HEADERDATA, a) &&
         SET(CURLOPT_WRITEFUNCTION, http_take_body) &&
         SET(CURLOPT_WRITEDATA, a) && SET(CURLOPT_ERRORBUFFER, error);
#undef SET
}

void ljp_http_send(struct ljp_http *http, const uint8_t *body, size_t len,
                   struct ljp_answer *a)
{
  struct curl_slist *headers = NULL;
  char error[CURL_ERROR_SIZE];
  *a = (struct ljp_answer){.exchange = LJP_EXCHANGE_REFUSED};
  const char *why = http_headers(http, &headers, a->error, sizeof a->error);
  if (why && why != a->error)
    snprintf(a->error, sizeof a->error, "%s", why);
  char *url = why ? NULL : http_url(http, &body, &len);
  if (!why && !url)
    snprintf(a->error, sizeof a->error, "%s", ljp_status_text(LJP_ERR_MEM));
  else if (!why && !http_set(http, url, headers, body, len, a, error)) {
    snprintf(a->error, sizeof a->error, "libcurl lacks what a push needs");
  } else if (!why) {
    CURLcode code = curl_easy_perform(http->curl);
    /* An answer that is too long is one all the same: its status counts. */
    if (code == CURLE_WRITE_ERROR && a->body_cut)
      code = CURLE_OK;
    a->exchange = http_exchange(code);
    curl_easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &a->status);
    /* Whatever went wrong before the transfer began (a proxy, a handshake), the
    ** server has nothing of the request. */
    curl_off_t begun_us = 0;
    curl_easy_getinfo(http->curl, CURLINFO_PRETRANSFER_TIME_T, &begun_us);
    if (a->exchange == LJP_EXCHANGE_BROKEN && begun_us <= 0)
      a->exchange = LJP_EXCHANGE_UNSENT;
    if (code != CURLE_OK)
      snprintf(a->error, sizeof a->error, "%s",
               *error ? error : curl_easy_strerror(code));
  }
  free(url);
  curl_slist_free_all(headers);
}
