/*
** Labels that are variables of a request, with a module that is not nginx's.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "profilers/session/request_labels.h"
#include "src/luajit/vms.h"

static struct request {
  char signature[4];
  bool real;
  struct text {
    const char *data;
    size_t len;
  } uri, tenant;
} request = {.signature = {'H', 'T', 'T', 'P'}, .real = true};

/* -- The module ------------------------------------------------------------ */

int ngx_http_lua_ffi_var_get(void *r, const char *name, size_t name_bytes,
                             char *lowered, int capture, char **value,
                             size_t *bytes, char **error);

__attribute__((visibility("default"))) int
ngx_http_lua_ffi_var_get(void *r, const char *name, size_t name_bytes,
                         char *lowered, int capture, char **value,
                         size_t *bytes, char **error)
{
  enum { NGX_OK = 0, NGX_ERROR = -1, NGX_DECLINED = -5 };
  static char none[] = "API disabled in the current context";
  const struct request *req = r;
  const struct text *found = NULL;
  assert_ptr_equal(req, &request);
  assert_int_equal(capture, 0);
  memset(lowered, 'x', name_bytes);
  if (!req->real) {
    *error = none;
    return NGX_ERROR;
  }
  if (name_bytes == 3 && memcmp(name, "uri", 3) == 0)
    found = &req->uri;
  else if (name_bytes == 5 && memcmp(name, "arg_t", 5) == 0)
    found = &req->tenant;
  if (!found || !found->data)
    return NGX_DECLINED;
  *value = (char *)(uintptr_t)found->data;
  *bytes = found->len;
  return NGX_OK;
}

static uint32_t (*labels_of)(void *owner);

void ljp_guest_listen_owners(uint32_t (*labels)(void *owner))
{
  labels_of = labels;
}

/* The labels of the request as text. */
static const char *text_of(void *owner)
{
  static char text[2048];
  struct ljp_labels labels;
  ljp_labels_get(labels_of(owner), &labels);
  text[0] = '\0';
  for (unsigned i = 0; i < labels.count; i++)
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s=%s",
             i ? "," : "", labels.list[i].key, labels.list[i].value);
  return text;
}

static void want(unsigned count, const struct ljp_label *list)
{
  struct ljp_labels variables = {.count = count};
  memcpy(variables.list, list, count * sizeof *list);
  assert_int_equal(ljp_request_labels_set(&variables), 0);
}

static struct text str(const char *text)
{
  return (struct text){text, strlen(text)};
}

static const struct ljp_label both[] = {{"route", "uri"}, {"tenant", "arg_t"}};

/* -- Tests ----------------------------------------------------------------- */

static void a_request_has_the_values_of_its_variables(void **state)
{
  (void)state;
  want(2, both);
  request.uri = str("/a");
  request.tenant = str("x");
  assert_string_equal(text_of(&request), "route=/a,tenant=x");
  request.tenant = (struct text){NULL, 0};
  assert_string_equal(text_of(&request), "route=/a");
  request.tenant = str("");
  assert_string_equal(text_of(&request), "route=/a");
  want(1, (struct ljp_label[]){{"zone", "unknown"}});
  assert_string_equal(text_of(&request), "");
  want(0, both);
  assert_string_equal(text_of(&request), "");
}

static void who_has_no_variables_has_no_labels(void **state)
{
  (void)state;
  static struct request stream = {.signature = {'S', 'T', 'R', 'M'}};
  want(2, both);
  request.uri = str("/a");
  assert_string_equal(text_of(NULL), "");
  assert_string_equal(text_of(&stream), "");
  request.real = false; /* A timer's. */
  assert_string_equal(text_of(&request), "");
  request.real = true;
  assert_string_equal(text_of(&request), "route=/a");
}

static void long_values_are_cut(void **state)
{
  (void)state;
  static char text[5000];
  char wanted[2048];
  memset(text, 'u', sizeof text);
  request.uri = (struct text){text, sizeof text}; /* No NUL behind it. */
  want(1, both);
  snprintf(wanted, sizeof wanted, "route=%.*s", LJP_LABELS_VALUE_BYTES, text);
  assert_string_equal(text_of(&request), wanted);
  /* An equal share for each. */
  char keys[LJP_REQUEST_VARIABLES][LJP_LABELS_KEY_BYTES + 1];
  struct ljp_label list[LJP_REQUEST_VARIABLES];
  for (int i = 0; i < LJP_REQUEST_VARIABLES; i++) {
    memset(keys[i], 'a' + i, LJP_LABELS_KEY_BYTES);
    keys[i][LJP_LABELS_KEY_BYTES] = '\0';
    list[i] = (struct ljp_label){keys[i], "uri"};
  }
  struct ljp_labels labels;
  want(LJP_REQUEST_VARIABLES, list);
  ljp_labels_get(labels_of(&request), &labels);
  assert_int_equal(labels.count, LJP_REQUEST_VARIABLES);
  for (int i = 0; i < LJP_REQUEST_VARIABLES; i++)
    assert_int_equal(strlen(labels.list[i].value), 62);
  assert_int_equal(ljp_labels_bytes(&labels), LJP_NAME_BYTES);
  request.uri = (struct text){"/a\0b", 4};
  want(1, both);
  assert_string_equal(text_of(&request), "route=/a");
}

static void too_many_values_are_others(void **state)
{
  (void)state;
  struct ljp_labels variables = {.count = 1, .list = {{"other", "uri"}}};
  char uri[32];
  want(1, both);
  for (int i = 0; i < 2 * LJP_LABELS_SETS; i++) {
    snprintf(uri, sizeof uri, "/%d", i);
    request.uri = str(uri);
    assert_true(labels_of(&request) != 0);
  }
  assert_string_equal(text_of(&request), "route=(other)");
  assert_int_equal(ljp_request_labels_set(&variables), ENOSPC);
  request.uri = str("/1"); /* It goes on as before. */
  assert_string_equal(text_of(&request), "route=/1");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_request_has_the_values_of_its_variables),
      cmocka_unit_test(who_has_no_variables_has_no_labels),
      cmocka_unit_test(long_values_are_cut),
      cmocka_unit_test(too_many_values_are_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
