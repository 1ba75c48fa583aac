/*
** What the files of the profile share while it is made: tables that turn
** what a stream says into the profile's dense numbers. Private to
** parsers/profile*.c.
**
** A stack costs once: its id leads by an array (`map`, by the low bits of
** the id as in model.c) to its node and the row last used there.
*/
#ifndef LJP_PARSERS_PROFILE_WORK_H
#define LJP_PARSERS_PROFILE_WORK_H

#include "parsers/profile/profile.h"
#include "parsers/profile/live.h"
#include "parsers/base/strings.h"
#include "parsers/base/array.h"
#include "parsers/base/index.h"

/* Nodes that are always there while reading. */
enum {
  LJP_NODE_NO_STACK = 1,
  LJP_NODE_LOST,
  LJP_NODE_TOO_MANY,
  LJP_NODE_BEFORE
};

#define LJP_MAP_ROWS 4u
struct ljp_map_entry {
  uint64_t id;
  uint32_t leaf, caller; /* Node + 1; 0: not made yet. */
  /* Last used with leaf, by low bits of the context, + 1; 0: none. */
  uint32_t rows[LJP_MAP_ROWS];
  uint32_t epoch; /* Holds in this only; 0: for ever. */
};

#define LJP_MAP_PAGE 1024u
#define LJP_MAP_PAGES (LJP_EPOCH_MAX_NODES / LJP_MAP_PAGE)

/* What a prototype's id means, kept for speed. */
struct ljp_proto_entry {
  uint64_t id;
  uint32_t name, file, first_line, epoch;
  bool known;
};
#define LJP_PROTO_ENTRIES 4096u

/* Contexts of the block that is being read, by state and cut, or (memory) by
** state and type. */
#define LJP_CONTEXT_STATES 16u
#define LJP_CONTEXT_CUTS 32u

/*
** Samples are counted many at a time: where a stack's row lies in memory is a
** matter of chance, and a processor fetches several such places at once if it
** is asked for them one right after the other.
*/
#define LJP_MANY_SAMPLES 64u

/* Likewise memory events, for the table of live blocks: they wait until some
** are there. Other events must find none waiting. */
#define LJP_WAITING_MEM 32u
struct ljp_waiting_mem {
  struct ljp_rec_mem mem;
  uint64_t time_ns;
  uint32_t context;
  bool wanted;
};

struct ljp_profile_work {
  struct ljp_waiting_mem waiting_mem[LJP_WAITING_MEM];
  unsigned waiting_mem_count;

  struct ljp_strings strings;
  struct ljp_index frame_index, node_index, context_index, row_index;
  struct ljp_index trace_index;
  uint32_t frame_room, node_room, context_room, row_room, memory_room;
  uint32_t estimate_room;
  uint32_t module_room, thread_room, vm_room, function_room;
  uint32_t gc_room, mark_room, trace_event_room, point_room;
  uint32_t trace_room;
  struct ljp_map_entry *map[LJP_MAP_PAGES];
  struct ljp_proto_entry *protos; /* LJP_PROTO_ENTRIES of them. */
  uint32_t too_many_names;        /* The string that stands for the rest. */
  uint32_t map_epoch;             /* Grows with each epoch and input. */

  const struct ljp_reader *reader; /* The input that is being read. */
  uint32_t source;
  uint64_t stream;
  bool begun;

  bool context_valid; /* The rest of these lines is. */
  uint64_t context_vm_id;
  unsigned context_what; /* SAMPLES or MEM: for which of the two. */
  uint32_t context_thread, context_vm;
  uint8_t context_kind;
  bool context_wanted; /* The thread is not filtered out. */
  uint32_t context_of[LJP_CONTEXT_STATES][LJP_CONTEXT_CUTS]; /* + 1 */

  struct ljp_live live;
  bool filters_time;
  uint64_t points_sorted_tick;
  bool since_seen;
  char **notices;
  uint32_t notice_count, notice_room;
};

/* -- tables.c: interning. LJP_ERR_MEM is the only failure. -------- */

enum ljp_status ljp_profile_tables(struct ljp_profile *p);

/* Strings beyond the limit become one that says so. */
enum ljp_status ljp_profile_string(struct ljp_profile *p, struct ljp_str s,
                                   uint32_t *id);
enum ljp_status ljp_profile_frame(struct ljp_profile *p,
                                  const struct ljp_profile_frame *frame,
                                  uint32_t *id);
enum ljp_status ljp_profile_node(struct ljp_profile *p, uint32_t parent,
                                 uint32_t frame, uint32_t *id);
enum ljp_status ljp_profile_context(struct ljp_profile *p,
                                    const struct ljp_profile_context *context,
                                    uint32_t *id);
enum ljp_status ljp_profile_row(struct ljp_profile *p, uint32_t node,
                                uint32_t context, uint32_t *id);
enum ljp_status ljp_profile_thread(struct ljp_profile *p, uint64_t id,
                                   uint32_t *thread);
enum ljp_status ljp_profile_vm(struct ljp_profile *p, uint64_t id,
                               uint32_t *vm);
enum ljp_status ljp_profile_module(struct ljp_profile *p, uint64_t id,
                                   uint32_t *module);
/* Begins memory[] by the one that is unused. */
enum ljp_status ljp_profile_no_memory(struct ljp_profile *p);
/* The row's memory, made if it has none. */
/* Makes room in estimates[] for all rows that there are; from then on it grows
** with them. */
enum ljp_status ljp_profile_estimates(struct ljp_profile *p);
enum ljp_status ljp_profile_row_memory(struct ljp_profile *p, uint32_t row,
                                       uint32_t *memory);

bool ljp_profile_same_frame(const struct ljp_profile_frame *a,
                            const struct ljp_profile_frame *b);

/* -- stack.c: from a stream's stack to a node. -------------------- */

/* *entry is valid until the next call; NULL: there is none to keep. */
enum ljp_status ljp_profile_stack(struct ljp_profile *p, uint64_t stack,
                                  struct ljp_map_entry **entry, uint32_t *node);
enum ljp_status ljp_profile_proto(struct ljp_profile *p, uint64_t id,
                                  struct ljp_proto_entry *proto);

/* -- take.c ------------------------------------------------------- */

/* A SAMPLES event and those that follow it in its record. */
enum ljp_status ljp_profile_samples(struct ljp_profile *p,
                                    struct ljp_reader *reader,
                                    const struct ljp_item *event);
enum ljp_status ljp_profile_take_mem(struct ljp_profile *p,
                                     const struct ljp_item *event);
enum ljp_status ljp_profile_mem_waiting(struct ljp_profile *p);

/* -- events.c: all that is neither sample, memory nor block. ------- */

enum ljp_status ljp_profile_event(struct ljp_profile *p,
                                  const struct ljp_item *event);

static inline uint64_t ljp_profile_since(const struct ljp_profile *p,
                                         uint64_t time_ns)
{
  return time_ns > p->origin_ns ? time_ns - p->origin_ns : 0;
}

static inline void ljp_profile_see_time(struct ljp_profile *p, uint64_t time_ns)
{
  if (time_ns > p->origin_ns + p->end_ns)
    p->end_ns = ljp_profile_since(p, time_ns);
}

/* -- traces.c ----------------------------------------------------- */

/* The entry of a trace by its id; 0: none, or no room. */
enum ljp_status ljp_profile_trace(struct ljp_profile *p, uint64_t id,
                                  uint32_t *trace);
enum ljp_status ljp_profile_trace_defined(struct ljp_profile *p,
                                          const struct ljp_rec_trace *rec);
enum ljp_status ljp_profile_trace_event(struct ljp_profile *p,
                                        const struct ljp_rec_trace_event *e);

/* -- time.c ------------------------------------------------------- */

enum ljp_status ljp_profile_point(struct ljp_profile *p, uint64_t time_ns,
                                  uint32_t row, uint64_t count, uint64_t weight,
                                  bool live);
/* Sorted, and each (tick, row) once. */
void ljp_profile_points_merge(struct ljp_profile *p);

/* -- mem.c -------------------------------------------------------- */

/* An event of MEM; row is of its stack, not used for a free. */
enum ljp_status ljp_profile_mem(struct ljp_profile *p,
                                const struct ljp_waiting_mem *event,
                                uint32_t row);
/* Counts what lives, at the end of an input; forgets it. */
enum ljp_status ljp_profile_mem_end(struct ljp_profile *p);

/* -- shape.c, notice.c ------------------------------------ */

enum ljp_status ljp_profile_shape(struct ljp_profile *p);
enum ljp_status ljp_profile_notices(struct ljp_profile *p);

#endif
