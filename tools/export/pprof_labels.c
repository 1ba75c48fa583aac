/*
** Labels of samples in pprof's format: thread, VM, state and type, and those of
** the program.
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "parsers/profile/labels.h"
#include "parsers/stream/names.h"
#include "tools/export/pprof.h"

enum { LABELS = 4 }; /* Without those of the program. */

/* Makes room for the labels of a sample; false: no memory. */
bool ljp_pprof_init_labels(const struct ljp_profile *p,
                           struct ljp_pprof_labels *names)
{
  size_t most = 0;
  for (uint32_t i = 0; i < p->label_count; i++)
    if (p->labels[i].count > most)
      most = p->labels[i].count;
  names->labels = calloc(LABELS + most, sizeof *names->labels);
  names->list = calloc(LABELS + most, sizeof *names->list);
  if (p->has_labels)
    names->strings =
        calloc((size_t)p->strings.count + 1, sizeof *names->strings);
  if (p->has_labels)
    names->keys = calloc((size_t)p->strings.count + 1, sizeof *names->keys);
  for (size_t i = 0; names->labels && names->list && i < LABELS + most; i++)
    names->list[i] = &names->labels[i];
  return names->labels && names->list &&
         ((names->strings && names->keys) || !p->has_labels);
}

void ljp_pprof_free_labels(struct ljp_pprof_labels *names)
{
  free(names->threads);
  free(names->vms);
  free(names->strings);
  free(names->keys);
  free(names->labels);
  free(names->list);
}

/* Adds the program's own labels after the first n. */
static size_t pprof_label_more(struct ljp_pprof *w,
                               struct ljp_pprof_labels *names, uint32_t number,
                               size_t n)
{
  const struct ljp_profile *p = w->e->p;
  const struct ljp_profile_labels *set = &p->labels[number];
  for (uint32_t i = 0; i < set->count; i++) {
    const struct ljp_profile_label_pair *pair = &p->label_pairs[set->first + i];
    if (!pair->key || !pair->value)
      continue;
    ljp__pprof__label__init(&names->labels[n]);
    names->labels[n].key = names->keys[pair->key];
    names->labels[n++].str =
        ljp_pprof_profile_string(w, pair->value, &names->strings[pair->value]);
  }
  return n;
}

static int64_t pprof_add_numbered(struct ljp_pprof *w, const char *what,
                                  uint64_t id, struct ljp_str name)
{
  char text[128];
  if (name.len)
    return ljp_pprof_add_text(w, name);
  snprintf(text, sizeof text, "%s %" PRIu64, what, id);
  return ljp_pprof_add_name(w, text);
}

size_t ljp_pprof_label_sample(struct ljp_pprof *w,
                              struct ljp_pprof_labels *names, uint32_t context)
{
  Ljp__Pprof__Label *labels = names->labels;
  const struct ljp_profile *p = w->e->p;
  const struct ljp_profile_context *c = &p->contexts[context];
  const char *state = ljp_profile_state_text(c->state);
  const char *type = c->type ? ljp_name_mem_type(c->type) : NULL;
  size_t n = 0;
  for (int i = 0; i < LABELS; i++)
    ljp__pprof__label__init(&labels[i]);
  if (c->thread) {
    const struct ljp_profile_thread *t = &p->threads[c->thread];
    if (!names->threads[c->thread])
      names->threads[c->thread] =
          pprof_add_numbered(w, "thread", t->id, ljp_profile_str(p, t->name));
    labels[n].key = names->thread;
    labels[n++].str = names->threads[c->thread];
  }
  if (c->vm) {
    const struct ljp_profile_vm *vm = &p->vms[c->vm];
    if (!names->vms[c->vm])
      names->vms[c->vm] =
          pprof_add_numbered(w, "vm", vm->id, ljp_profile_str(p, vm->name));
    labels[n].key = names->vm;
    labels[n++].str = names->vms[c->vm];
  }
  if (state) {
    if (!names->states[c->state])
      names->states[c->state] = ljp_pprof_add_name(w, state);
    labels[n].key = names->state;
    labels[n++].str = names->states[c->state];
  }
  if (type) {
    if (!names->types[c->type])
      names->types[c->type] = ljp_pprof_add_name(w, type);
    labels[n].key = names->type;
    labels[n++].str = names->types[c->type];
  }
  if (w->e->own_labels)
    n = 0;
  return pprof_label_more(w, names, c->labels, n);
}
