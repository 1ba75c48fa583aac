/*
** Contexts, and the filter for one thread. One thread a profile.
*/
#include "parsers/profile/context.h"

#include <stdio.h>
#include <string.h>

#include "parsers/profile/intern.h"
#include "parsers/profile/pass.h"
#include "src/base/assert.h"

bool ljp_context_thread_wanted(const struct ljp_profile *p, uint32_t thread)
{
  const struct ljp_profile_thread *t = &p->threads[thread];
  const char *want = p->options.thread;
  char number[24];
  if (!want)
    return true;
  struct ljp_str name = ljp_profile_str(p, t->name);
  if (name.len == strlen(want) && memcmp(name.data, want, name.len) == 0)
    return true;
  snprintf(number, sizeof number, "%llu", (unsigned long long)t->id);
  if (t->id && strcmp(number, want) == 0)
    return true;
  snprintf(number, sizeof number, "%llu", (unsigned long long)t->tid);
  return t->tid && strcmp(number, want) == 0;
}

enum ljp_status ljp_context_check_thread(struct ljp_profile *p)
{
  size_t at, room = sizeof p->error;
  if (!p->options.thread || p->thread_count <= 1)
    return LJP_OK;
  for (uint32_t i = 1; i < p->thread_count; i++)
    if (ljp_context_thread_wanted(p, i))
      return LJP_OK;
  at = (size_t)snprintf(p->error, room,
                        "there is no thread '%.40s'; those of the file are",
                        p->options.thread);
  for (uint32_t i = 1; i < p->thread_count && at < room; i++) {
    const struct ljp_profile_thread *t = &p->threads[i];
    struct ljp_str name = ljp_profile_str(p, t->name);
    if (room - at < 80) {
      snprintf(p->error + at, room - at, " ...");
      break;
    }
    at += (size_t)snprintf(p->error + at, room - at,
                           "%s '%.*s' (number %llu, OS number %llu)",
                           i > 1 ? "," : "", name.len < 20 ? (int)name.len : 20,
                           name.len ? name.data : "", (unsigned long long)t->id,
                           (unsigned long long)t->tid);
  }
  return LJP_ERR_USE;
}

void ljp_context_see_producer(struct ljp_profile *p, uint64_t kind)
{
  if (kind < sizeof p->recorded)
    p->recorded[kind] = true;
  if (kind == LJP_PRODUCER_MEMORY && !p->options.no_memory)
    p->has_memory = true;
}

enum ljp_status ljp_context_fill(struct ljp_context_cache *cache,
                                 struct ljp_profile *p,
                                 const struct ljp_item *item, uint64_t vm)
{
  const struct ljp_rec_producer *producer =
      ljp_model_producer(&p->pass->reader->model, item->block->head.producer);
  bool memory = item->what == LJP_REC_MEM;
  enum ljp_status status;
  ljp_assert(memory || item->what == LJP_REC_SAMPLES);
  if ((status = ljp_profile_find_thread(p, producer ? producer->thread : 0,
                                        &cache->thread)) ||
      (status = ljp_profile_find_vm(p, vm, &cache->vm)))
    return status;
  cache->kind = memory ? LJP_PRODUCER_MEMORY : LJP_PRODUCER_CPU;
  if (!memory && producer && producer->kind == LJP_PRODUCER_WALL)
    cache->kind = LJP_PRODUCER_WALL;
  ljp_context_see_producer(p, cache->kind);
  if (producer && !p->interval_ns[cache->kind])
    p->interval_ns[cache->kind] = producer->interval;
  cache->vm_id = vm;
  cache->what = item->what;
  cache->wanted = ljp_context_thread_wanted(p, cache->thread);
  memset(cache->ids, 0, sizeof cache->ids);
  cache->valid = true;
  return LJP_OK;
}

enum ljp_status ljp_context_make(struct ljp_context_cache *cache,
                                 struct ljp_profile *p, uint8_t state,
                                 uint8_t detail, uint32_t *id)
{
  struct ljp_profile_context c = {.thread = cache->thread,
                                  .vm = cache->vm,
                                  .kind = cache->kind,
                                  .state = state};
  ljp_assert(cache->valid);
  if (cache->what == LJP_REC_MEM)
    c.type = detail;
  else
    c.cut = detail;
  enum ljp_status status = ljp_profile_intern_context(p, &c, id);
  if (!status && state < LJP_CONTEXT_STATES && detail < LJP_CONTEXT_DETAILS)
    cache->ids[state][detail] = *id + 1;
  return status;
}
