/* Fuzz target: any text as settings of LJPROF_RECORD. What is accepted becomes a
** request with a path, and an error is one line of printable ASCII. Also any text as
** the name of a file in a store: what is accepted is written again as it was. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profilers/api/settings.h"
#include "src/base/store_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_request(const char *text)
{
  bool wrong;
  char *request = ljp_settings_request(text, &wrong);
  if (!request)
    return;
  if (!*request)
    abort();
  if (!wrong && (!strstr(request, ";path=") || !strstr(request, ";service=")))
    abort();
  for (const char *p = request; wrong && *p; p++)
    if (*p > 0 && (*p < ' ' || *p > '~'))
      abort();
  free(request);
}

static void check_name(const char *text)
{
  struct ljp_store_name name;
  char service[LJP_STORE_SERVICE_BYTES], again[LJP_STORE_NAME_BYTES];
  ljp_store_service_make(service, text);
  if (!ljp_store_service_valid(service))
    abort();
  if (!ljp_store_name_parse(text, &name))
    return;
  ljp_store_name_put(again, &name);
  if (strcmp(again, text) != 0 || strchr(text, '/') || *text == '.' ||
      ljp_store_name_compare(&name, &name) != 0)
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  char *text = malloc(size + 1);
  if (!text)
    return 0;
  memcpy(text, data, size);
  text[size] = '\0';
  if (strchr(text, '=')) /* Else it would be the path of a file. */
    check_request(text);
  check_name(text);
  free(text);
  return 0;
}
