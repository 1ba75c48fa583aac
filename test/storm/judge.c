/*
** Judges the files of a storm: each is whole and was closed by the end of its
** session, it has samples, and enough of them have complete stacks.
**
**   storm_judge [--deep | --once] PERCENT FILE...
**
** A stack is complete if it was walked to its root and can be read back to it.
** Samples that could not be taken (a signal in a signal, a VM that could not be
** walked) count as incomplete. The judge prints the samples that the timer
** merged or that did not fit into the ring, and the places where walks ended
** early. It always allows two incomplete samples, because a short storm has
** fewer than a thousand. --deep: stacks cut at the depth limit are complete,
** too. --once: no function calls itself, directly or indirectly, so a stack
** that shows a function twice is wrong.
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/stream/frame_text.h"
#include "parsers/stream/names.h"
#include "parsers/stream/reader.h"

enum { CUTS = 256, PLACES = 64, SHOWN = 8, FEW = 2 };

/* A place where walks ended early: the last frame. */
struct place {
  uint64_t ref, value, count;
  uint8_t kind, cut;
  char text[128];
};

struct verdict {
  uint64_t samples, complete, torn, missing, twice;
  uint64_t cut[CUTS];
  struct place place[PLACES];
};

static void judge_note_place(struct verdict *v, const struct ljp_model *model,
                             const struct ljp_rec_node *last, uint8_t cut)
{
  struct ljp_frame_refs view;
  for (struct place *p = v->place; p < v->place + PLACES; p++) {
    if (!p->count) {
      *p = (struct place){last->ref, last->value, 0, last->kind, cut, ""};
      ljp_frame_resolve(model, last, &view);
      ljp_frame_text(model, &view, p->text, sizeof p->text);
    }
    if (p->ref == last->ref && p->value == last->value &&
        p->kind == last->kind && p->cut == cut) {
      p->count++;
      return;
    }
  }
}

static int judge_by_count(const void *a, const void *b)
{
  const struct place *x = a, *y = b;
  return (x->count < y->count) - (x->count > y->count);
}

static void judge_print_places(struct verdict *v)
{
  qsort(v->place, PLACES, sizeof *v->place, judge_by_count);
  for (int i = 0; i < SHOWN && v->place[i].count; i++)
    printf("  cut by \"%s\" at %s: %" PRIu64 "\n",
           ljp_name_cut(v->place[i].cut) ? ljp_name_cut(v->place[i].cut) : "?",
           v->place[i].text, v->place[i].count);
}

static bool judge_is_lua(const struct ljp_rec_node *frame)
{
  return frame->kind == LJP_FRAME_LUA || frame->kind == LJP_FRAME_LUA_INLINED;
}

/* Is a Lua function in the stack twice? */
static bool judge_repeats(const struct ljp_rec_node *const *frames,
                          unsigned count)
{
  for (unsigned i = 0; i < count; i++)
    for (unsigned k = 0; judge_is_lua(frames[i]) && k < i; k++)
      if (judge_is_lua(frames[k]) && frames[i]->ref == frames[k]->ref)
        return true;
  return false;
}

static void judge_sample(struct verdict *v, const struct ljp_reader *reader,
                         const struct ljp_rec_sample *sample, bool deep,
                         bool once)
{
  const struct ljp_rec_node *frames[LJP_STACK_MAX_NODES];
  unsigned count;
  enum ljp_stack_end end =
      ljp_model_stack(&reader->model, sample->stack, frames, &count);
  bool whole = sample->cut == LJP_CUT_NONE;
  v->samples++;
  v->cut[sample->cut]++;
  v->twice += once && judge_repeats(frames, count);
  if (deep && sample->cut == LJP_CUT_DEPTH)
    whole = true;
  if (!whole && count)
    judge_note_place(v, &reader->model, frames[count - 1], sample->cut);
  if (end == LJP_STACK_LOST || count == 0) {
    v->torn++;
    whole = false;
  }
  v->complete += whole;
}

static bool judge_file(const char *path, double percent, bool deep, bool once)
{
  static struct ljp_reader reader;
  static struct verdict v;
  const struct ljp_item *event;
  memset(&v, 0, sizeof v);
  enum ljp_status status = ljp_reader_open(&reader, path);
  while (!status && !(status = ljp_reader_next(&reader, &event)) &&
         event->what != LJP_ITEM_FINISH)
    if (event->what == LJP_REC_SAMPLES)
      judge_sample(&v, &reader, &event->u.sample, deep, once);
  if (status) {
    printf("storm_judge: %s: %s\n", path, reader.error);
    return false;
  }
  const struct ljp_finish *finish = &event->u.finish;
  bool clean = finish->clean && finish->closed == LJP_CLOSED_END &&
               !finish->gaps && !finish->bad_records;
  printf("samples %" PRIu64, v.samples);
  for (size_t i = 0; i < reader.tally.loss_count; i++) {
    const struct ljp_tally_loss *loss = &reader.tally.losses[i];
    if (!loss->count)
      continue;
    printf(", %s %" PRIu64,
           loss->overrun ? "merged" : ljp_name_loss(loss->reason), loss->count);
    if (!loss->overrun &&
        (loss->reason == LJP_LOSS_NESTED || loss->reason == LJP_LOSS_BUSY))
      v.missing += loss->count;
  }
  for (unsigned i = 1; i < CUTS; i++)
    if (v.cut[i])
      printf(", cut by \"%s\" %" PRIu64,
             ljp_name_cut(i) ? ljp_name_cut(i) : "?", v.cut[i]);
  if (v.torn)
    printf(", stacks that cannot be read back %" PRIu64, v.torn);
  if (v.twice)
    printf(", a function twice in the stack %" PRIu64, v.twice);
  uint64_t all = v.samples + v.missing;
  double share = all ? 100.0 * (double)v.complete / (double)all : 0;
  printf(", complete %.4f %%, %s end\n", share, clean ? "clean" : "UNCLEAN");
  judge_print_places(&v);
  ljp_reader_fini(&reader);
  bool enough = share >= percent || (v.complete && all - v.complete <= FEW);
  return clean && v.samples && enough && !v.twice;
}

int main(int argc, char **argv)
{
  bool deep = argc > 1 && strcmp(argv[1], "--deep") == 0;
  bool once = argc > 1 && strcmp(argv[1], "--once") == 0;
  int at = 1 + deep + once;
  if (argc < at + 2) {
    fprintf(stderr, "usage: storm_judge [--deep | --once] PERCENT FILE...\n");
    return 2;
  }
  double percent = strtod(argv[at], NULL);
  bool good = true;
  for (int i = at + 1; i < argc; i++)
    good = judge_file(argv[i], percent, deep, once) && good;
  return good ? 0 : 1;
}
