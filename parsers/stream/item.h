/*
** Items: what a reader yields, one at a time. An item is a block's header, a
** definition, an event, or a finding about the stream itself (a gap, a
** malformed or unknown record, the end).
**
** The lists below describe each flat record (one that holds a single
** definition or event) field by field. The structs here, the decoder in
** record.c and the views are all generated from these lists.
**
** Everything that an item points to is borrowed until the next call of
** ljp_reader_next().
*/
#ifndef LJP_PARSERS_ITEM_H
#define LJP_PARSERS_ITEM_H

#include <stddef.h>

#include "parsers/base/str.h"
#include "src/base/heap_format.h"

/* A counted list of pairs of numbers, still encoded. ljp_pairs_next() walks
** it. */
struct ljp_pairs {
  uint64_t count;
  const uint8_t *data, *end;
};

/*
** F(type, name, show). The types:
**   U      number
**   U1     number that a minor version added; 0 if the body ends before it
**   S      signed number
**   T      time; relative in the stream, absolute here
**   STR    bytes
**   PAIRS  a count and that many pairs of numbers
** How views show the field: DEC; HEX (an address); TEXT; BYTES (a string that
** is not text); otherwise the name of the list in format.h that has its texts.
*/
#define LJP_FIELDS_PROCESS(F)                                                  \
  F(U, pid, DEC)                                                               \
  F(U, parent_pid, DEC)                                                        \
  F(U, anchor_mono_ns, DEC)                                                    \
  F(U, anchor_wall_ns, DEC)                                                    \
  F(STR, executable, TEXT)                                                     \
  F(STR, command_line, TEXT)
#define LJP_FIELDS_INFO(F) F(STR, key, TEXT) F(STR, value, TEXT)
#define LJP_FIELDS_MODULE(F)                                                   \
  F(U, id, DEC)                                                                \
  F(U, bias, HEX)                                                              \
  F(U, start, HEX)                                                             \
  F(U, size, DEC)                                                              \
  F(U, flags, DEC)                                                             \
  F(STR, build_id, BYTES)                                                      \
  F(STR, path, TEXT)
#define LJP_FIELDS_THREAD(F) F(U, id, DEC) F(U, tid, DEC) F(STR, name, TEXT)
#define LJP_FIELDS_VM(F) F(U, id, DEC) F(U, thread, DEC) F(STR, name, TEXT)
#define LJP_FIELDS_PRODUCER(F)                                                 \
  F(U, id, DEC)                                                                \
  F(U, kind, PRODUCER)                                                         \
  F(U, thread, DEC)                                                            \
  F(U, interval, DEC) F(U1, timer, TIMER) F(U1, refused, DEC)
#define LJP_FIELDS_PROTO(F)                                                    \
  F(U, id, DEC)                                                                \
  F(U, first_line, DEC)                                                        \
  F(U, last_line, DEC)                                                         \
  F(U, flags, DEC)                                                             \
  F(STR, chunk, TEXT)                                                          \
  F(STR, name, TEXT)
#define LJP_FIELDS_TRACE(F)                                                    \
  F(U, id, DEC)                                                                \
  F(U, vm, DEC)                                                                \
  F(U, number, DEC)                                                            \
  F(U, parent, DEC)                                                            \
  F(U, parent_exit, DEC)                                                       \
  F(U, root, DEC)                                                              \
  F(U, proto, DEC)                                                             \
  F(U, line, DEC)                                                              \
  F(U, link, DEC)                                                              \
  F(U, code_address, HEX)                                                      \
  F(U, code_size, DEC)                                                         \
  F(STR, link_type, TEXT)                                                      \
  F(U1, ir_count, DEC)                                                         \
  F(U1, snapshots, DEC)                                                        \
  F(U1, marks, DEC)                                                            \
  F(U1, flags, DEC)                                                            \
  F(U1, marks_cut, DEC)
#define LJP_FIELDS_BUILTIN(F) F(U, ffid, DEC) F(STR, name, TEXT)
#define LJP_FIELDS_SYMBOL(F)                                                   \
  F(U, module, DEC)                                                            \
  F(U, address, HEX)                                                           \
  F(U, level, DEC)                                                             \
  F(U, line, DEC)                                                              \
  F(STR, function, TEXT)                                                       \
  F(STR, file, TEXT)
#define LJP_FIELDS_LABELS(F) F(U, id, DEC) F(STR, labels, BYTES)
#define LJP_FIELDS_GC(F)                                                       \
  F(T, time_ns, DEC)                                                           \
  F(U, vm, DEC)                                                                \
  F(U, phase, GC_PHASE) F(U, heap_bytes, DEC) F(U, cycle, DEC)
#define LJP_FIELDS_TRACE_EVENT(F)                                              \
  F(T, time_ns, DEC)                                                           \
  F(U, vm, DEC)                                                                \
  F(U, action, TRACE_WHAT)                                                     \
  F(U, trace, DEC)                                                             \
  F(U, proto, DEC)                                                             \
  F(U, line, DEC)                                                              \
  F(U, reason_number, DEC)                                                     \
  F(STR, reason, TEXT)                                                         \
  F(U1, parent, DEC)                                                           \
  F(U1, parent_exit, DEC)                                                      \
  F(U1, stack, DEC)
#define LJP_FIELDS_VMSTATE(F)                                                  \
  F(T, time_ns, DEC) F(U, vm, DEC) F(PAIRS, counters, VMSTATE)
#define LJP_FIELDS_MARK(F)                                                     \
  F(T, time_ns, DEC)                                                           \
  F(U, thread, DEC) F(U, vm, DEC) F(S, value, DEC) F(STR, text, TEXT)
#define LJP_FIELDS_INTERVAL(F)                                                 \
  F(T, time_ns, DEC) F(U, interval, DEC) F(U, why, INTERVAL_WHY)
#define LJP_FIELDS_OVERRUN(F)                                                  \
  F(T, time_ns, DEC) F(U, producer, DEC) F(U, count, DEC)
#define LJP_FIELDS_LOSS(F)                                                     \
  F(T, time_ns, DEC) F(U, producer, DEC) F(U, reason, LOSS) F(U, count, DEC)
#define LJP_FIELDS_MODULE_GONE(F) F(T, time_ns, DEC) F(U, module, DEC)
#define LJP_FIELDS_VM_CLOSE(F) F(T, time_ns, DEC) F(U, vm, DEC)
#define LJP_FIELDS_THREAD_END(F) F(T, time_ns, DEC) F(U, thread, DEC)
#define LJP_FIELDS_NOTE(F)                                                     \
  F(T, time_ns, DEC) F(U, severity, NOTE) F(STR, text, TEXT)
#define LJP_FIELDS_UNSAMPLED(F)                                                \
  F(T, time_ns, DEC)                                                           \
  F(U, thread, DEC) F(U, kind, PRODUCER) F(U, why, UNSAMPLED) F(U, ns, DEC)
#define LJP_FIELDS_CPU_TIME(F) F(T, time_ns, DEC) F(U, ns, DEC)
#define LJP_FIELDS_ELAPSED(F) F(T, time_ns, DEC) F(U, thread, DEC) F(U, ns, DEC)
#define LJP_FIELDS_EPOCH(F)                                                    \
  F(U, segment, DEC) F(U, why, EPOCH_WHY) F(U, first_node, DEC)
#define LJP_FIELDS_TOTALS(F) F(PAIRS, counts, RECORD)
#define LJP_FIELDS_SEGMENT_END(F) F(T, time_ns, DEC) F(U, next, DEC)
#define LJP_FIELDS_END(F)                                                      \
  F(T, time_ns, DEC) F(U, status, STATUS) F(U, error, DEC) F(STR, reason, TEXT)
#define LJP_FIELDS_HEAP(F)                                                     \
  F(T, time_ns, DEC)                                                           \
  F(U, snapshot, DEC)                                                          \
  F(U, vm, DEC)                                                                \
  F(U, taken, HEAP_TAKEN)                                                      \
  F(U, heap_bytes, DEC)                                                        \
  F(U, phase, GC_PHASE)                                                        \
  F(U, text_limit, DEC)                                                        \
  F(U, slot_bytes, DEC) F(U, node_bytes, DEC)
#define LJP_FIELDS_HEAP_END(F)                                                 \
  F(T, time_ns, DEC)                                                           \
  F(U, snapshot, DEC) F(U, objects, DEC) F(U, refs, DEC) F(U, bytes, DEC)
#define LJP_FIELDS_HEAP_MOMENT(F)                                              \
  F(T, time_ns, DEC)                                                           \
  F(U, snapshot, DEC) F(U, vm, DEC) F(U, heap_bytes, DEC)

#define LJP_FIELDS_HEAP_TYPE(F)                                                \
  F(T, time_ns, DEC)                                                           \
  F(U, snapshot, DEC)                                                          \
  F(U, number, DEC) F(U, kind, HEAP_CTYPE) F(U, bytes, DEC) F(U, of, DEC)

#define LJP_FIELDS_HELD(F)                                                     \
  F(T, time_ns, DEC)                                                           \
  F(U, vm, DEC) F(U, cycle, DEC) F(U, flags, DEC) F(U, blocks, DEC)
#define LJP_FIELDS_LIVE(F)                                                     \
  F(T, time_ns, DEC)                                                           \
  F(U, vm, DEC)                                                                \
  F(U, address, HEX)                                                           \
  F(U, size, DEC)                                                              \
  F(U, weight, DEC)                                                            \
  F(U, stack, DEC)                                                             \
  F(U, type, DEC) F(U, state, VMSTATE) F(U, cycle, DEC)

/* The flat records: tag, member of the item's union. */
#define LJP_FLAT_LIST(_)                                                       \
  _(PROCESS, process)                                                          \
  _(INFO, info)                                                                \
  _(MODULE, module)                                                            \
  _(THREAD, thread)                                                            \
  _(VM, vm)                                                                    \
  _(PRODUCER, producer)                                                        \
  _(PROTO, proto)                                                              \
  _(TRACE, trace)                                                              \
  _(BUILTIN, builtin)                                                          \
  _(SYMBOL, symbol)                                                            \
  _(LABELS, labels)                                                            \
  _(GC, gc)                                                                    \
  _(TRACE_EVENT, trace_event)                                                  \
  _(VMSTATE, vmstate)                                                          \
  _(MARK, mark)                                                                \
  _(INTERVAL, interval)                                                        \
  _(OVERRUN, overrun)                                                          \
  _(LOSS, loss)                                                                \
  _(MODULE_GONE, module_gone)                                                  \
  _(VM_CLOSE, vm_close)                                                        \
  _(THREAD_END, thread_end)                                                    \
  _(NOTE, note)                                                                \
  _(UNSAMPLED, unsampled)                                                      \
  _(CPU_TIME, cpu_time)                                                        \
  _(ELAPSED, elapsed)                                                          \
  _(EPOCH, epoch)                                                              \
  _(TOTALS, totals)                                                            \
  _(SEGMENT_END, segment_end)                                                  \
  _(END, end)                                                                  \
  _(HEAP, heap)                                                                \
  _(HEAP_END, heap_end)                                                        \
  _(HEAP_MOMENT, heap_moment)                                                  \
  _(HEAP_TYPE, heap_type)                                                      \
  _(HELD, held)                                                                \
  _(LIVE, live)

#define LJP_CTYPE_U uint64_t
#define LJP_CTYPE_U1 uint64_t
#define LJP_CTYPE_S int64_t
#define LJP_CTYPE_T uint64_t
#define LJP_CTYPE_STR struct ljp_str
#define LJP_CTYPE_PAIRS struct ljp_pairs

#define LJP_MEMBER(type, name, show) LJP_CTYPE_##type name;
#define LJP_X(tag, member)                                                     \
  struct ljp_rec_##member {                                                    \
    LJP_FIELDS_##tag(LJP_MEMBER)                                               \
  };
LJP_FLAT_LIST(LJP_X)
#undef LJP_X
#undef LJP_MEMBER

/* A node of the stack tree. By the shape of its kind:
**   LUA   ref is the prototype, value the line
**   ADDR  ref is the module, value the offset; ref 0: value is the address
**   NUM   value is the number, ref is 0 */
struct ljp_rec_node {
  uint64_t id;
  uint64_t ref, value;
  uint32_t up; /* Id minus the parent's id; 0: a root. */
  uint8_t kind, flags;
};

struct ljp_rec_sample {
  uint64_t stack, vm, weight;
  uint8_t state, cut;
};

/* A sample as ljp_reader_samples() returns it. */
struct ljp_timed_sample {
  uint64_t time_ns;
  struct ljp_rec_sample sample;
};

struct ljp_rec_mem {
  uint64_t address, old_address; /* old_*: 0 unless a realloc. */
  uint64_t size, old_size;
  uint64_t stack, vm, weight;
  uint8_t op, state;
  uint8_t type, flags; /* enum ljp_mem_type, enum ljp_mem_flag. */
};

/* An object of a heap snapshot (RFC 7). Type NONE: one that came before, whose
** references continue. */
struct ljp_rec_object {
  uint64_t snapshot, address, bytes;
  uint64_t numbers[LJP_HEAP_MAX_NUMBERS];
  struct ljp_str text;
  uint8_t type, flags; /* enum ljp_mem_type, enum ljp_heap_flag. */
  bool extra;          /* A newer version tells more, which was skipped. */
};

/* A reference of the object before. key: of a FIELD, else 0. */
struct ljp_rec_ref {
  uint64_t snapshot, object;
  uint64_t number, key, target;
  struct ljp_str name;
  uint8_t how, flags; /* enum ljp_heap_how; LJP_HEAP_WEAK, LJP_HEAP_WEAK_KEY. */
};

/* A whole block. */
struct ljp_block {
  struct ljp_block_head head;
  uint64_t offset;        /* Of the header, in the input. */
  const uint8_t *payload; /* head.raw_len bytes. LJP_BLOCK_SLACK bytes after
                          ** them may be read; their content means nothing. */
};

#define LJP_BLOCK_SLACK 128u

#define LJP_GAP_LIST(_)                                                        \
  _(NONE, 0, "none")                                                           \
  _(GARBAGE, 1, "no block begins here")                                        \
  _(HEAD_CRC, 2, "block header with a wrong checksum")                         \
  _(HEAD_LIMIT, 3, "block header beyond the format's limits")                  \
  _(PAYLOAD_CRC, 4, "block payload with a wrong checksum")                     \
  _(CUT, 5, "the input ends inside a block")                                   \
  _(VERSION, 6, "block of a newer format version")                             \
  _(FOREIGN, 7, "block of another session")                                    \
  _(SEQ, 8, "block repeated or out of order")                                  \
  _(FLAGS, 9, "block with flags that are not known")                           \
  _(ZSTD, 10, "block that cannot be decompressed")                             \
  _(MISSING, 11, "blocks missing from the sequence")

enum ljp_gap_reason {
#define LJP_X(name, number, text) LJP_GAP_##name = number,
  LJP_GAP_LIST(LJP_X)
#undef LJP_X
};

struct ljp_gap {
  uint64_t offset, bytes;
  uint64_t missing;   /* Number of blocks, by their sequence numbers. */
  bool missing_known; /* false: missing is only a lower limit. */
  uint8_t reason;     /* enum ljp_gap_reason, for the gap's first byte. */
};

#define LJP_BAD_LIST(_)                                                        \
  _(NONE, 0, "none")                                                           \
  _(SHORT, 1, "ends before its fields do")                                     \
  _(NUMBER, 2, "number of more than 64 bits")                                  \
  _(STRING, 3, "string longer than its record or the limit")                   \
  _(PAIRS, 4, "count larger than its record")                                  \
  _(RESERVED, 5, "reserved bits are set")                                      \
  _(OPERATION, 6, "memory operation that does not exist")                      \
  _(NODE_ID, 7, "stack node outside the epoch's range")                        \
  _(NODE_PARENT, 8, "stack node whose parent does not come before it")         \
  _(FRAMING, 9, "record that does not fit its block")                          \
  _(TABLE, 10, "definition beyond the reader's memory limit")                  \
  _(TOTALS, 11, "count of events that does not match the stream")              \
  _(ADDRESS, 12, "address of an object that cannot be")                        \
  _(LABELS, 13, "labels that are not pairs, sorted by key")                    \
  _(LABELS_PARENT, 14, "labels that are not at the root of a stack")

enum ljp_bad_reason {
#define LJP_X(name, number, text) LJP_BAD_##name = number,
  LJP_BAD_LIST(LJP_X)
#undef LJP_X
};

/* A malformed record (FRAMING: the rest of a block). The events that were
** decoded from it before the error have been delivered. */
struct ljp_bad {
  uint64_t tag;
  uint32_t payload_offset; /* Of the record, in the decompressed payload. */
  uint32_t bytes;          /* Length of the record. */
  uint8_t reason;          /* enum ljp_bad_reason. */
};

struct ljp_unknown {
  uint64_t tag;
  uint32_t payload_offset, bytes;
};

enum ljp_closed { LJP_CLOSED_NOT, LJP_CLOSED_SEGMENT, LJP_CLOSED_END };

/* The end of the input, with counts of what the reader found. */
struct ljp_finish {
  uint64_t bytes; /* block_bytes + gap_bytes + begun_bytes */
  uint64_t blocks, block_bytes;
  uint64_t gaps, gap_bytes;
  uint64_t begun_bytes; /* Of a block that is being written. */
  uint64_t missing_blocks;
  uint64_t bad_records, unknown_records;
  bool missing_known;
  bool clean;      /* The stream was closed and nothing follows it. */
  bool recording;  /* It was not, and the session goes on (recording.h). */
  uint8_t closed;  /* enum ljp_closed: how the last whole block ends. */
  uint64_t status; /* From its END: 0, or why the session ended early. */
  uint64_t error;  /* From its END: errno, or 0. */
};

/* ljp_item.what is a tag of enum ljp_record, or one of these. */
enum ljp_item_kind {
  LJP_ITEM_BLOCK = 0x100,
  LJP_ITEM_GAP,
  LJP_ITEM_BAD,
  LJP_ITEM_UNKNOWN,
  LJP_ITEM_FINISH,
  LJP_ITEM_REF /* Of an object, in a heap snapshot. */
};

struct ljp_item {
  unsigned what;
  uint64_t time_ns;              /* CLOCK_MONOTONIC; 0: no time. */
  const struct ljp_block *block; /* That holds it; NULL: GAP and FINISH. */
  union {
#define LJP_X(tag, member) struct ljp_rec_##member member;
    LJP_FLAT_LIST(LJP_X)
#undef LJP_X
    struct ljp_rec_node node;     /* NODES: one at a time. */
    struct ljp_rec_sample sample; /* SAMPLES: likewise. */
    struct ljp_rec_mem mem;       /* MEM: likewise. */
    struct ljp_rec_object object; /* OBJECTS: likewise. */
    struct ljp_rec_ref ref;       /* LJP_ITEM_REF. */
    struct ljp_gap gap;
    struct ljp_bad bad;
    struct ljp_unknown unknown;
    struct ljp_finish finish;
  } u;
};

/* Returns the next pair; false: there are no more. */
bool ljp_pairs_next(struct ljp_pairs *pairs, uint64_t *a, uint64_t *b);

#endif
