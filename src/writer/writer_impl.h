/*
** Inside of the writer: shared by writer.c (rounds), take.c (records) and
** epoch.c (epochs and definitions). Nobody else includes it.
*/
#ifndef LJP_WRITER_IMPL_H
#define LJP_WRITER_IMPL_H

#include "src/writer/builder.h"
#include "src/writer/defs.h"
#include "src/writer/intern.h"
#include "src/writer/modules.h"
#include "src/writer/out.h"
#include "src/push/producer_impl.h"
#include "src/writer/refs.h"
#include "src/writer/writer.h"

#ifdef LJP_DEBUG
#define LJP_DEFAULT_MAX_NODES 4096u /* More than one stack may have. */
#define LJP_DEFAULT_EPOCH_BYTES (64u << 10)
#define LJP_MAX_DEFS_BYTES (256u << 10)
#else
#define LJP_DEFAULT_MAX_NODES (1u << 18)
#define LJP_DEFAULT_EPOCH_BYTES (64u << 20)
#define LJP_MAX_DEFS_BYTES (16u << 20)
#endif
#define LJP_DEFAULT_EPOCH_NS (60 * UINT64_C(1000000000))
_Static_assert(LJP_DEFAULT_MAX_NODES > LJP_STACK_MAX_FRAMES, "a stack fits");
_Static_assert(LJP_DEFAULT_MAX_NODES <= LJP_EPOCH_MAX_NODES, "RFC 1");

enum { LJP_ADDRESS_CACHE = 4096, LJP_GONE_AT_ONCE = 256 };

/* What the writer knows of one producer. */
struct ljp_source {
  struct ljp_source *next;
  struct ljp_producer *producer; /* NULL: retired. */
  uint32_t id;
  uint64_t end;   /* Drain up to here. */
  unsigned depth; /* Frames in words. */
  unsigned valid; /* So many of chain hold, for these generations: */
  uint32_t node_generation, module_generation, ref_generation;
  uint64_t lost[LJP_LOSS_COUNT]; /* As written. */
  uint64_t overruns;
  uint64_t own_loss[LJP_LOSS_COUNT]; /* Lost here, not in the push; all that
                                     ** was lost once it has retired. */
  uint64_t own_overruns;             /* Then only. */
  uint32_t id_epoch;  /* In which the last stack, if all of chain holds, has */
  uint64_t stack_id;  /* this id. */
  struct ljp_mem mem; /* For brief events: time and VM of the one before. */
  uint64_t words[LJP_STACK_MAX_FRAMES];
  uint32_t chain[LJP_STACK_MAX_FRAMES];
};

struct ljp_writer {
  struct ljp_writer_options options;
  struct ljp_sink *sink;
  struct ljp_out out;
  struct ljp_builder builder;
  struct ljp_intern nodes;
  struct ljp_defs defs;
  struct ljp_refs refs;
  struct ljp_modules modules;
  struct ljp_source *sources;
  uint64_t now_ns;
  uint64_t epoch_start_ns, segment_start_ns;
  uint32_t modules_announced; /* Generation. */
  uint32_t info_count;
  struct {
    uint64_t word, stable;
  } addresses[LJP_ADDRESS_CACHE];
  uint32_t addresses_generation;
  uint32_t path[LJP_STACK_MAX_FRAMES];
  struct ljp_body body;
  uint8_t record[LJP_RECORD_MAX_BYTES + 16];
};

/* epoch.c */
enum ljp_status ljp_writer_block(struct ljp_writer *w, uint16_t flags);
enum ljp_status ljp_writer_epoch(struct ljp_writer *w, enum ljp_epoch_why why);
void ljp_writer_look(struct ljp_writer *w);
uint64_t ljp_writer_stable(struct ljp_writer *w, uint64_t word,
                           uint64_t time_ns, bool *settled);
bool ljp_writer_need_node(struct ljp_writer *w, uint32_t index);
void ljp_writer_need_trace(struct ljp_writer *w, uint64_t id);
void ljp_writer_put_totals(struct ljp_writer *w);
/* Starts a body that begins with a time, in the block being built. */
struct ljp_body *ljp_writer_timed(struct ljp_writer *w, uint64_t time_ns);
void ljp_writer_put_event(struct ljp_writer *w, enum ljp_record tag);
/* An empty body; the body as a definition to be kept, NULL: no memory; writes a
** kept one (NULL: none) unless this epoch has it. */
struct ljp_body *ljp_writer_body(struct ljp_writer *w);
struct ljp_def *ljp_writer_keep(struct ljp_writer *w, enum ljp_def_class class,
                                uint64_t key, uint64_t id, enum ljp_record tag);
void ljp_writer_put(struct ljp_writer *w, struct ljp_def *def);

/* take.c: one record; and brief events, as many in a row as there are up
** to `end`, from the one at *pos on. They make no definitions, unless that of a
** stack is wanted again: then only the one. */
void ljp_writer_take(struct ljp_writer *w, struct ljp_source *s,
                     const struct ljp_ring_record *r);
void ljp_writer_take_briefs(struct ljp_writer *w, struct ljp_source *s,
                            const struct ljp_ring *ring, uint64_t *pos,
                            uint64_t end);

/* protos.c */
/* The number of what a reference stands for now; 0: not known. */
uint32_t ljp_writer_proto(struct ljp_writer *w, uint32_t ref);
/* The id in the file of a number, which is defined now; 0 of 0. */
uint64_t ljp_writer_need_proto(struct ljp_writer *w, uint32_t number);
/* Of what has gone, and of which nothing is left to be drained. */
void ljp_writer_forget_protos(struct ljp_writer *w);

#endif
