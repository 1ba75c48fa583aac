/*
** See find.h.
*/
#include "tools/heap/find.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shared/command.h"

static void find_mark(struct ljp_heap_found *found, uint32_t node)
{
  found->count += !ljp_heap_is_found(found, node);
  found->bits[node / 8] |= (uint8_t)(1u << node % 8);
}

static bool find_matches(const regex_t *regex, struct ljp_str s)
{
  char text[LJP_HEAP_TEXT_MAX_BYTES + 1];
  uint32_t len = s.len < sizeof text - 1 ? s.len : (uint32_t)sizeof text - 1;
  memcpy(text, s.data, len);
  for (uint32_t i = 0; i < len; i++)
    if (!text[i])
      text[i] = ' ';
  text[len] = '\0';
  return regexec(regex, text, 0, NULL, 0) == 0;
}

/* Kinds first, then strings, then what stands under such strings. */
static enum ljp_status find_by_regex(const struct ljp_graph *g,
                                     const struct ljp_heap_kinds *kinds,
                                     const regex_t *regex,
                                     struct ljp_heap_found *found)
{
  uint8_t *keys = calloc(g->count / 8 + 1, 1);
  uint8_t *matches = calloc(kinds->count + 1, 1);
  if (!keys || !matches) {
    free(keys);
    free(matches);
    return LJP_ERR_MEM;
  }
  uint32_t paths = LJP_HEAP_KIND_PATHS;
  for (uint32_t i = 0; i < kinds->count; i++) {
    struct ljp_heap_text text = {.len = 0};
    ljp_heap_kind_name(g, &kinds->list[i], &paths, &text);
    matches[i] = find_matches(regex, ljp_str(text.data, text.len));
  }
  if (!paths)
    ljp_command_note("heap", "many metatables have long paths: the names of "
                             "some kinds of tables were searched without them");
  for (uint32_t i = 1; i < g->count; i++) {
    struct ljp_str s = ljp_graph_string(g, i);
    if (s.len && find_matches(regex, s)) {
      keys[i / 8] |= (uint8_t)(1u << i % 8);
      find_mark(found, i);
    } else if (matches[kinds->of[i]]) {
      find_mark(found, i);
    }
  }
  for (size_t e = 0; e < g->ref_count; e++)
    if (ljp_graph_how(g, (uint32_t)e) == LJP_HEAP_HOW_FIELD &&
        keys[g->name[e] / 8] >> g->name[e] % 8 & 1)
      find_mark(found, g->target[e]);
  free(keys);
  free(matches);
  return LJP_OK;
}

static enum ljp_status find_by_site(const struct ljp_graph *g,
                                    const struct ljp_heap_sites *sites,
                                    const regex_t *regex,
                                    struct ljp_heap_found *found)
{
  uint8_t *matches = calloc(sites->count + 1, 1);
  if (!matches)
    return LJP_ERR_MEM;
  for (uint32_t i = 0; i < sites->count; i++) {
    struct ljp_heap_text text = {.len = 0};
    ljp_heap_site_text(sites, i, &text);
    matches[i] = find_matches(regex, ljp_str(text.data, text.len));
  }
  for (uint32_t i = 1; i < g->count; i++)
    if (sites->of[i] != LJP_HEAP_NO_GROUP && matches[sites->of[i]])
      find_mark(found, i);
  free(matches);
  return LJP_OK;
}

static bool find_by_address(const struct ljp_graph *g, const char *pattern,
                            struct ljp_heap_found *found)
{
  char *end;
  errno = 0;
  unsigned long long address = strtoull(pattern, &end, 16);
  if (strncmp(pattern, "0x", 2) != 0 || *end || errno || !address)
    return false;
  for (uint32_t i = 1; i < g->count; i++)
    if (g->address[i] == address)
      find_mark(found, i);
  return true;
}

/* Views show "table {id, name}": a brace that begins no repetition, such as {2,3},
** stands for itself. NULL: no memory. */
static char *find_escape(const char *pattern)
{
  char *out = malloc(2 * strlen(pattern) + 1), *to = out;
  for (const char *p = pattern; out && *p; p++) {
    if (*p == '\\' && p[1])
      *to++ = *p++;
    else if (*p == '{' && !(p[1] >= '0' && p[1] <= '9') && p[1] != ',')
      *to++ = '\\';
    *to++ = *p;
  }
  if (out)
    *to = '\0';
  return out;
}

static enum ljp_status find_compile(const char *pattern, regex_t *regex)
{
  char *escaped = find_escape(pattern);
  if (!escaped)
    return LJP_ERR_MEM;
  int error = regcomp(regex, escaped, REG_EXTENDED | REG_NOSUB);
  free(escaped);
  if (error) {
    char why[128];
    regerror(error, regex, why, sizeof why);
    ljp_command_error("heap", "'%s' is not a regular expression: %s", pattern,
                      why);
    return LJP_ERR_USE;
  }
  return LJP_OK;
}

bool ljp_heap_can_find(const char *pattern)
{
  regex_t regex;
  enum ljp_status status = find_compile(pattern, &regex);
  if (!status)
    regfree(&regex);
  return status != LJP_ERR_USE;
}

static void find_only_wanted(const struct ljp_graph *g,
                             const struct ljp_heap_sites *sites,
                             struct ljp_heap_found *found)
{
  for (uint32_t i = 1; i < g->count; i++)
    if (ljp_heap_is_found(found, i) && !ljp_heap_sites_want(sites, i)) {
      found->bits[i / 8] &= (uint8_t) ~(1u << i % 8);
      found->count--;
    }
}

enum ljp_status ljp_heap_find(const struct ljp_graph *g,
                              const struct ljp_heap_kinds *kinds,
                              const struct ljp_heap_sites *sites,
                              const char *pattern, struct ljp_heap_found *found)
{
  regex_t regex;
  *found = (struct ljp_heap_found){.bits = calloc(g->count / 8 + 1, 1)};
  if (!found->bits)
    return LJP_ERR_MEM;
  enum ljp_status status = LJP_OK;
  if (!find_by_address(g, pattern, found)) {
    status = find_compile(pattern, &regex);
    if (status)
      return status;
    status = find_by_regex(g, kinds, &regex, found);
    if (!status && sites)
      status = find_by_site(g, sites, &regex, found);
    regfree(&regex);
  }
  if (!status && sites && sites->labelled)
    find_only_wanted(g, sites, found);
  return status;
}

void ljp_heap_found_fini(struct ljp_heap_found *found)
{
  free(found->bits);
  found->bits = NULL;
}
