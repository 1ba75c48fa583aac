/*
** Contexts: the thread, VM, state (and so on) of an event. Within a block most
** of them are the same for all events, so they are looked up once a block and
** VM; the cache below then leads from the rest, two bytes, to a context.
*/
#ifndef LJP_PARSERS_PROFILE_CONTEXT_H
#define LJP_PARSERS_PROFILE_CONTEXT_H

#include "parsers/profile/profile.h"
#include "src/base/sigsafe.h"

#define LJP_CONTEXT_STATES 16u
#define LJP_CONTEXT_DETAILS 32u

struct ljp_context_cache {
  bool valid;     /* The other members are. */
  bool wanted;    /* The thread is not filtered out. */
  uint8_t kind;   /* enum ljp_producer_kind */
  unsigned what;  /* LJP_REC_SAMPLES or LJP_REC_MEM: what it was made for. */
  uint64_t vm_id; /* In the stream. */
  uint32_t thread, vm; /* In the profile. */
  /* Context + 1 by state and detail; 0: not made yet. The detail of a sample
  ** is its cut, that of a memory event its type. */
  uint32_t ids[LJP_CONTEXT_STATES][LJP_CONTEXT_DETAILS];
};

/* Whether the options select this thread: by name, id or OS id. */
bool ljp_context_thread_wanted(const struct ljp_profile *p, uint32_t thread);

/* If options.thread is none of the threads, p->error says which there are.
** LJP_ERR_USE. */
enum ljp_status ljp_context_check_thread(struct ljp_profile *p);

/* Notes that the input has a producer of a kind. */
void ljp_context_see_producer(struct ljp_profile *p, uint64_t kind);

/* Fills the cache for the item's block and a VM. LJP_ERR_MEM. */
enum ljp_status ljp_context_fill(struct ljp_context_cache *cache,
                                 struct ljp_profile *p,
                                 const struct ljp_item *item, uint64_t vm);

/* Fills the cache unless it holds what this item needs; what is item->what. */
static inline enum ljp_status ljp_context_enter(struct ljp_context_cache *cache,
                                                struct ljp_profile *p,
                                                const struct ljp_item *item,
                                                unsigned what, uint64_t vm)
{
  if (LJP_LIKELY(cache->valid && cache->vm_id == vm && cache->what == what))
    return LJP_OK;
  return ljp_context_fill(cache, p, item, vm);
}

enum ljp_status ljp_context_make(struct ljp_context_cache *cache,
                                 struct ljp_profile *p, uint8_t state,
                                 uint8_t detail, uint32_t *id);

/* The context of a state and a detail, by the filled cache. LJP_ERR_MEM. */
static inline enum ljp_status ljp_context_find(struct ljp_context_cache *cache,
                                               struct ljp_profile *p,
                                               uint8_t state, uint8_t detail,
                                               uint32_t *id)
{
  if (LJP_LIKELY(state < LJP_CONTEXT_STATES && detail < LJP_CONTEXT_DETAILS &&
                 cache->ids[state][detail])) {
    *id = cache->ids[state][detail] - 1;
    return LJP_OK;
  }
  return ljp_context_make(cache, p, state, detail, id);
}

#endif
