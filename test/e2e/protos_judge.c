/*
** Checks the stream of protos_gone.lua: wherever a function f_N is in a stack,
** its chunk is cN, its line is N % 97 + 1, and the cdata that it allocates has
** the size that N gives.
**
**   protos_judge FILE [SAMPLES EVENTS]   the least numbers with such a function
**
** Exit code 1 if something contradicts this, or if names are missing.
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/stream/frame_text.h"
#include "parsers/stream/names.h"
#include "parsers/stream/reader.h"

enum { SHOWN = 10, LINES = 97, SIZES = 1009, LEAST = 2000, HEAD = 64 };

static uint64_t samples, events, unnamed, wrong;

/* Parses "f_N"; false for any other name. */
static bool number_of(struct ljp_str name, uint64_t *number)
{
  char text[32], *end;
  if (name.len < 3 || name.len >= sizeof text)
    return false;
  memcpy(text, name.data, name.len);
  text[name.len] = '\0';
  if (strncmp(text, "f_", 2) != 0)
    return false;
  *number = strtoull(text + 2, &end, 10);
  return *end == '\0';
}

static bool chunk_is(struct ljp_str chunk, uint64_t number)
{
  char text[32];
  int n = snprintf(text, sizeof text, "=c%" PRIu64, number);
  return chunk.len == (size_t)n && memcmp(chunk.data, text, chunk.len) == 0;
}

/* size: of the allocation with this stack; 0 if unknown. */
static void look(const struct ljp_reader *reader, uint64_t stack, uint64_t size,
                 uint64_t *count)
{
  const struct ljp_rec_node *frames[LJP_STACK_MAX_NODES];
  unsigned depth;
  ljp_model_stack(&reader->model, stack, frames, &depth);
  for (unsigned i = 0; i < depth; i++) {
    struct ljp_frame_refs view;
    uint64_t number;
    if (frames[i]->kind != LJP_FRAME_LUA &&
        frames[i]->kind != LJP_FRAME_LUA_INLINED)
      continue;
    ljp_frame_resolve(&reader->model, frames[i], &view);
    if (!view.proto || (view.proto->flags & LJP_PROTO_UNKNOWN)) {
      unnamed++;
      continue;
    }
    if (!number_of(view.proto->name, &number))
      continue;
    ++*count;
    uint64_t line = number % LINES + 1, least = LEAST + number % SIZES;
    bool odd = !chunk_is(view.proto->chunk, number) ||
               view.proto->first_line != line ||
               (frames[i]->value != line && frames[i]->value != 0) ||
               (size && (size < least || size > least + HEAD));
    wrong += odd;
    if (odd && wrong <= SHOWN)
      printf("f_%" PRIu64 ": chunk %.*s, defined in line %" PRIu64
             ", at line %" PRIu64 ", allocates %" PRIu64 "\n",
             number, (int)view.proto->chunk.len, view.proto->chunk.data,
             (uint64_t)view.proto->first_line, frames[i]->value, size);
  }
}

int main(int argc, char **argv)
{
  static struct ljp_reader reader;
  const struct ljp_item *event;
  if (argc != 2 && argc != 4) {
    fprintf(stderr, "usage: protos_judge FILE [SAMPLES EVENTS]\n");
    return 2;
  }
  enum ljp_status status = ljp_reader_open(&reader, argv[1]);
  while (!status && !(status = ljp_reader_next(&reader, &event)) &&
         event->what != LJP_ITEM_FINISH) {
    if (event->what == LJP_REC_SAMPLES) {
      look(&reader, event->u.sample.stack, 0, &samples);
    } else if (event->what == LJP_REC_MEM) {
      const struct ljp_rec_mem *m = &event->u.mem;
      bool cdata = m->op == LJP_MEM_ALLOC && m->type == LJP_MEM_TYPE_CDATA;
      if (m->op != LJP_MEM_FREE)
        look(&reader, m->stack, cdata ? m->size : 0, &events);
    }
  }
  if (status) {
    fprintf(stderr, "protos_judge: %s: %s\n", argv[1], reader.error);
    return 1;
  }
  printf("%" PRIu64 " samples and %" PRIu64 " allocations in freed "
         "functions; without a name %" PRIu64 ", contradictions %" PRIu64 "\n",
         samples, events, unnamed, wrong);
  ljp_reader_fini(&reader);
  return wrong || unnamed ||
         (argc == 4 && (samples < strtoull(argv[2], NULL, 10) ||
                        events < strtoull(argv[3], NULL, 10)));
}
