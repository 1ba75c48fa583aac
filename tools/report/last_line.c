/*
** The last line of a function's definition, which the profile does not keep: it
** is read from the definitions in the stream, while the profile is loaded.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/stream/names.h"
#include "tools/report/report.h"

/* Of a function that WHERE may mean. */
struct ljp_last_line {
  char *chunk;
  uint32_t chunk_len;
  uint64_t first, last;
};

static bool last_line_is_meant(const struct ljp_last_lines *l,
                               const struct ljp_rec_proto *proto)
{
  const char *colon = strrchr(l->where, ':');
  const char *names[] = {l->where, colon ? colon + 1 : l->where};
  char line[24];
  snprintf(line, sizeof line, "%llu", (unsigned long long)proto->first_line);
  for (int i = 0; i < 2; i++)
    if (ljp_str_same(proto->name,
                     (struct ljp_str){names[i], (uint32_t)strlen(names[i])}) ||
        strcmp(line, names[i]) == 0)
      return true;
  return false;
}

enum ljp_status ljp_last_lines_take(void *ctx, const struct ljp_reader *reader,
                                    const struct ljp_item *item)
{
  enum { MOST = 256 };
  struct ljp_last_lines *l = ctx;
  const struct ljp_rec_proto *proto = &item->u.proto;
  char room[LJP_CHUNK_NAME_BYTES];
  (void)reader;
  if (item->what != LJP_REC_PROTO || proto->flags & LJP_PROTO_UNKNOWN ||
      l->count == MOST || !last_line_is_meant(l, proto))
    return LJP_OK;
  struct ljp_str chunk = ljp_chunk_name(proto->chunk, room);
  for (unsigned i = 0; i < l->count; i++)
    if (l->list[i].first == proto->first_line &&
        l->list[i].last == proto->last_line &&
        ljp_str_same(chunk, ljp_str(l->list[i].chunk, l->list[i].chunk_len)))
      return LJP_OK;
  if (!l->list && !(l->list = calloc(MOST, sizeof *l->list)))
    return LJP_ERR_MEM;
  char *copy = malloc((size_t)chunk.len + 1);
  if (!copy)
    return LJP_ERR_MEM;
  if (chunk.len)
    memcpy(copy, chunk.data, chunk.len);
  l->list[l->count++] = (struct ljp_last_line){
      copy, chunk.len, proto->first_line, proto->last_line};
  return LJP_OK;
}

uint32_t ljp_last_line(const struct ljp_last_lines *l, struct ljp_str file,
                       uint32_t first_line)
{
  uint64_t last = 0;
  for (unsigned i = 0; i < l->count; i++)
    if (l->list[i].first == first_line && l->list[i].last > last &&
        ljp_str_same(file, ljp_str(l->list[i].chunk, l->list[i].chunk_len)))
      last = l->list[i].last;
  return last < UINT32_MAX ? (uint32_t)last : 0;
}

void ljp_last_lines_fini(struct ljp_last_lines *l)
{
  for (unsigned i = 0; i < l->count; i++)
    free(l->list[i].chunk);
  free(l->list);
  *l = (struct ljp_last_lines){0};
}
