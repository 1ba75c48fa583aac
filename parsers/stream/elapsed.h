/*
** The balance of elapsed time, thread by thread: the time that a thread was in
** a session is the time that its samples stand for plus the time that no sample
** stands for (RFC 1, ELAPSED). Each balance is used by one thread.
*/
#ifndef LJP_PARSERS_ELAPSED_H
#define LJP_PARSERS_ELAPSED_H

#include "parsers/base/index.h"
#include "parsers/stream/reader.h"

/* Threads; those beyond are left out. */
#define LJP_ELAPSED_MAX_THREADS 65536u

struct ljp_elapsed_thread {
  uint64_t id;
  bool told;           /* The stream says how long it was there. */
  uint64_t lived_ns;   /* How long, as the stream says. */
  uint64_t sampled_ns; /* Weights of its samples. */
  uint64_t unsampled_ns;
};

struct ljp_elapsed {
  struct ljp_elapsed_thread *threads;
  uint32_t count, room;
  struct ljp_index index; /* Of threads. */
  uint64_t block_thread;  /* Whose samples are in the block; 0: nobody's. */
  bool block_known;
};

void ljp_elapsed_fini(struct ljp_elapsed *elapsed);

/* Takes any item; most have nothing to say. LJP_ERR_MEM. */
enum ljp_status ljp_elapsed_take(struct ljp_elapsed *elapsed,
                                 const struct ljp_model *model,
                                 const struct ljp_item *item);

/* The time that neither samples nor UNSAMPLED events account for; negative:
** they account for more. And whether that is too much: more than 2 % and 20
** ms. */
int64_t ljp_elapsed_difference(const struct ljp_elapsed_thread *thread);
bool ljp_elapsed_off(const struct ljp_elapsed_thread *thread);

#endif
