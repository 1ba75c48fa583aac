/*
** The numbers of the stream's format: tags, kinds, reasons, limits and the
** block header. doc/rfc/0001-stream.md explains them; test_format checks that
** the two agree. Writer and readers include this header; it needs no other.
**
** Every list is an X-macro, so that name, number and text cannot drift apart.
** The numbers are in files: they are only added, never changed.
*/
#ifndef LJP_FORMAT_H
#define LJP_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#define LJP_FORMAT_MAJOR 1
#define LJP_FORMAT_MINOR 8

/* -- Limits: beyond them a reader reports damage -------------------------- */

#define LJP_BLOCK_HEAD_BYTES 56u
#define LJP_BLOCK_MAX_BYTES (1u << 20) /* Payload, stored or raw. */
#define LJP_STRING_MAX_BYTES 65535u
#define LJP_STACK_MAX_FRAMES 2048u
#define LJP_EPOCH_MAX_NODES (1u << 20)

/* Different sets of labels that a process keeps apart. */
#define LJP_MAX_LABEL_SETS 4096u

/* -- Block header -------------------------------------------------------- */

#define LJP_BLOCK_SYNC 0x504a4c89u /* Bytes 89 'L' 'J' 'P'. */

/* Bits 0-7 change the meaning of the payload: a reader skips a block that has
** such a bit and that it does not know. Bits 8-15 may be ignored. */
#define LJP_BLOCK_ZSTD 0x0001u
#define LJP_BLOCK_KEY 0x0100u /* First block of an epoch. */
#define LJP_BLOCK_MUST_KNOW 0x00ffu

struct ljp_block_head {
  uint8_t major, minor;
  uint16_t flags;
  uint64_t stream;      /* Random, not 0, the same in the whole session. */
  uint64_t seq;         /* 0, 1, 2 ... over all segments of the session. */
  uint64_t time_ns;     /* Base of the block's times; CLOCK_MONOTONIC. */
  uint32_t epoch;       /* 1, 2 ... */
  uint32_t producer;    /* 0: the writer itself. */
  uint32_t stored_len;  /* Bytes that follow the header. */
  uint32_t raw_len;     /* Bytes after decompression. */
  uint32_t payload_crc; /* CRC32C of the stored bytes. */
};

/* -- Records: name, tag, text, E = event (counted in TOTALS) or - --------- */

#define LJP_RECORD_LIST(_)                                                     \
  _(PROCESS, 1, "process", 0)                                                  \
  _(INFO, 2, "info", 0)                                                        \
  _(MODULE, 3, "module", 0)                                                    \
  _(THREAD, 4, "thread", 0)                                                    \
  _(VM, 5, "vm", 0)                                                            \
  _(PRODUCER, 6, "producer", 0)                                                \
  _(PROTO, 7, "proto", 0)                                                      \
  _(TRACE, 8, "trace", 0)                                                      \
  _(BUILTIN, 9, "builtin", 0)                                                  \
  _(NODES, 10, "nodes", 0)                                                     \
  _(SYMBOL, 11, "symbol", 0)                                                   \
  _(LABELS, 12, "labels", 0)                                                   \
  _(SAMPLES, 32, "samples", 1)                                                 \
  _(MEM, 33, "mem", 1)                                                         \
  _(GC, 34, "gc", 1)                                                           \
  _(TRACE_EVENT, 35, "trace-event", 1)                                         \
  _(VMSTATE, 36, "vmstate", 1)                                                 \
  _(MARK, 37, "mark", 1)                                                       \
  _(INTERVAL, 38, "interval", 1)                                               \
  _(OVERRUN, 39, "overrun", 0)                                                 \
  _(LOSS, 40, "loss", 0)                                                       \
  _(MODULE_GONE, 41, "module-gone", 1)                                         \
  _(VM_CLOSE, 42, "vm-close", 1)                                               \
  _(THREAD_END, 43, "thread-end", 1)                                           \
  _(NOTE, 44, "note", 1)                                                       \
  _(UNSAMPLED, 45, "unsampled", 1)                                             \
  _(CPU_TIME, 46, "cpu-time", 1)                                               \
  _(ELAPSED, 47, "elapsed", 1)                                                 \
  _(EPOCH, 48, "epoch", 0)                                                     \
  _(TOTALS, 49, "totals", 0)                                                   \
  _(SEGMENT_END, 50, "segment-end", 0)                                         \
  _(END, 51, "end", 0)                                                         \
  _(HEAP, 64, "heap", 0)                                                       \
  _(OBJECTS, 65, "objects", 0)                                                 \
  _(HEAP_END, 66, "heap-end", 0)                                               \
  _(HEAP_MOMENT, 67, "heap-moment", 1)                                         \
  _(HEAP_TYPE, 68, "heap-type", 0)                                             \
  _(HELD, 69, "held", 0)                                                       \
  _(LIVE, 70, "live", 0)

/* Tables of records by tag have this size. */
#define LJP_RECORD_TAGS 80u

enum ljp_record {
#define LJP_X(name, number, text, event) LJP_REC_##name = number,
  LJP_RECORD_LIST(LJP_X)
#undef LJP_X
};

/* First byte of each event inside SAMPLES. */
#define LJP_SAMPLE_STACK 0x01u
#define LJP_SAMPLE_STATE 0x02u
#define LJP_SAMPLE_VM 0x04u
#define LJP_SAMPLE_WEIGHT 0x08u
#define LJP_SAMPLE_CUT 0x10u
#define LJP_SAMPLE_EXTRA 0x80u
#define LJP_SAMPLE_KNOWN 0x9fu

/* First byte of each event inside MEM. */
#define LJP_MEM_OP_LIST(_)                                                     \
  _(ALLOC, 0, "alloc")                                                         \
  _(FREE, 1, "free")                                                           \
  _(REALLOC, 2, "realloc")

enum ljp_mem_op {
#define LJP_X(name, number, text) LJP_MEM_##name = number,
  LJP_MEM_OP_LIST(LJP_X)
#undef LJP_X
};
#define LJP_MEM_OP_MASK 0x03u
#define LJP_MEM_STACK 0x04u
#define LJP_MEM_STATE 0x08u
#define LJP_MEM_SIZE 0x10u
#define LJP_MEM_WEIGHT 0x20u
#define LJP_MEM_WHAT 0x40u
#define LJP_MEM_EXTRA 0x80u

/* The purpose of the memory that an allocation or reallocation asks for. */
#define LJP_MEM_TYPE_LIST(_)                                                   \
  _(NONE, 0, "-")                                                              \
  _(STRING, 1, "string")                                                       \
  _(TABLE, 2, "table")                                                         \
  _(ARRAY_PART, 3, "table array part")                                         \
  _(HASH_PART, 4, "table hash part")                                           \
  _(FUNCTION, 5, "function")                                                   \
  _(UPVALUE, 6, "upvalue")                                                     \
  _(USERDATA, 7, "userdata")                                                   \
  _(CDATA, 8, "cdata")                                                         \
  _(THREAD, 9, "thread")                                                       \
  _(STACK, 10, "stack of a thread")                                            \
  _(PROTO, 11, "prototype")                                                    \
  _(TRACE, 12, "trace")                                                        \
  _(BUFFER, 13, "buffer")                                                      \
  _(STRING_INDEX, 14, "index of strings")                                      \
  _(COMPILER, 15, "trace compiler")                                            \
  _(PARSER, 16, "parser")                                                      \
  _(CTYPE, 17, "C types")                                                      \
  _(GC, 18, "garbage collector")                                               \
  _(OTHER, 19, "other internal memory")

enum ljp_mem_type {
#define LJP_X(name, number, text) LJP_MEM_TYPE_##name = number,
  LJP_MEM_TYPE_LIST(LJP_X)
#undef LJP_X
};
#define LJP_MEM_TYPE_MASK 0x1fu

/* Bits 5-7 of the same byte. */
#define LJP_MEM_FLAG_LIST(_)                                                   \
  _(SWEPT, 0x20, "swept")   /* Freed by the collector as garbage. */           \
  _(FAILED, 0x40, "failed") /* Out of memory: nothing has changed. */          \
  _(MOVED, 0x80, "moved")   /* Half of a reallocation that was sampled. */

enum ljp_mem_flag {
#define LJP_X(name, number, text) LJP_MEM_##name = number,
  LJP_MEM_FLAG_LIST(LJP_X)
#undef LJP_X
};

/* Flags of HELD. */
enum ljp_held_flag {
  LJP_HELD_KEPT = 1,  /* Its blocks follow. */
  LJP_HELD_CLOSED = 2 /* The VM is closed. */
};

/* -- Frames --------------------------------------------------------------
** In rings a frame is one 64-bit word: kind in bits 60-63, flags in 56-59,
** payload below; a stack is an array of words, leaf first. In files a frame
** is a node of the stack tree with a payload that stays true when addresses
** are reused. Shapes of the payload:
**          word (56 bits)                      node
**   LUA    prototype ref (55-24), line (23-0)  prototype id, line
**   ADDR   address                             module id, offset
**   NUM    number                              number
*/
enum ljp_frame_shape {
  LJP_SHAPE_LUA = 1,
  LJP_SHAPE_ADDR = 2,
  LJP_SHAPE_NUM = 3
};

#define LJP_FRAME_KIND_LIST(_)                                                 \
  _(LUA, 1, LUA, "Lua")             /* Lua function, interpreted. */           \
  _(LUA_INLINED, 2, LUA, "inlined") /* Lua function in a trace. */             \
  _(BUILTIN, 3, NUM, "builtin")     /* Fast function: its ffid. */             \
  _(CFUNC, 4, ADDR, "C")            /* lua_CFunction: its address. */          \
  _(HOST, 5, ADDR, "host")          /* Machine code: return address or PC. */  \
  _(VM, 6, ADDR, "VM")              /* The VM's own assembly: PC. */           \
  _(TRACE, 7, NUM, "trace")         /* Compiled trace: its id. */              \
  _(KERNEL, 8, NUM, "kernel")       /* Kernel address. */                      \
  _(CUT, 9, NUM, "cut")             /* The walk ended: enum ljp_cut. */        \
  _(PROFILER, 10, NUM,                                                         \
    "profiler") /* The profiler's own work in the host: 0. */                  \
  _(LABELS, 11, NUM,                                                           \
    "labels") /* Only as root: what the program calls its work. */

enum ljp_frame_kind {
#define LJP_X(name, number, shape, text) LJP_FRAME_##name = number,
  LJP_FRAME_KIND_LIST(LJP_X)
#undef LJP_X
};

/* Flag bits 0-1: how exactly a frame is known (LUA_INLINED, TRACE). */
#define LJP_EXACT_LIST(_)                                                      \
  _(EXACT, 0, "exact")       /* Interpreted, or from a marker. */              \
  _(SNAPSHOT, 1, "snapshot") /* From the nearest snapshot. */                  \
  _(ROOT, 2, "root")         /* Only the trace's root is known. */

enum ljp_exact {
#define LJP_X(name, number, text) LJP_EXACT_##name = number,
  LJP_EXACT_LIST(LJP_X)
#undef LJP_X
};
#define LJP_FRAME_EXACT_MASK 0x3u
#define LJP_FRAME_TAIL 0x4u /* Reached by a tail call: its caller is gone. */

#define LJP_FRAME_PAYLOAD_MASK ((UINT64_C(1) << 56) - 1)
#define LJP_FRAME_LINE_MASK 0xffffffu

static inline uint64_t ljp_frame(enum ljp_frame_kind kind, unsigned flags,
                                 uint64_t payload)
{
  return (uint64_t)kind << 60 | (uint64_t)(flags & 15u) << 56 |
         (payload & LJP_FRAME_PAYLOAD_MASK);
}

static inline uint64_t ljp_frame_lua(enum ljp_frame_kind kind, unsigned flags,
                                     uint32_t proto_ref, uint32_t line)
{
  return ljp_frame(kind, flags,
                   (uint64_t)proto_ref << 24 | (line & LJP_FRAME_LINE_MASK));
}

static inline unsigned ljp_frame_kind(uint64_t word)
{
  return (unsigned)(word >> 60);
}

static inline unsigned ljp_frame_flags(uint64_t word)
{
  return (unsigned)(word >> 56) & 15u;
}

static inline uint64_t ljp_frame_payload(uint64_t word)
{
  return word & LJP_FRAME_PAYLOAD_MASK;
}

static inline uint32_t ljp_frame_proto_ref(uint64_t word)
{
  return (uint32_t)(word >> 24);
}

static inline uint32_t ljp_frame_line(uint64_t word)
{
  return (uint32_t)word & LJP_FRAME_LINE_MASK;
}

/* Shape of a kind's payload; a kind that is not in the list has NUM. */
static inline enum ljp_frame_shape ljp_frame_shape(unsigned kind)
{
  switch (kind) {
#define LJP_X(name, number, shape, text)                                       \
  case number:                                                                 \
    return LJP_SHAPE_##shape;
    LJP_FRAME_KIND_LIST(LJP_X)
#undef LJP_X
  }
  return LJP_SHAPE_NUM;
}

/* -- Why a walk stopped early --------------------------------------------- */

#define LJP_CUT_LIST(_)                                                        \
  _(NONE, 0, "whole")                                                          \
  _(DEPTH, 1, "depth limit")                                                   \
  _(NO_TABLE, 2, "no unwind table for the address")                            \
  _(BAD_RULE, 3, "unwind rule not supported")                                  \
  _(BAD_READ, 4, "memory not readable")                                        \
  _(BAD_FRAME, 5, "frame link not believed")                                   \
  _(RESIZE, 6, "stack being resized")                                          \
  _(NO_BASE, 7, "stack base not known here")                                   \
  _(ABORTED, 8, "given up by the walker")

enum ljp_cut {
#define LJP_X(name, number, text) LJP_CUT_##name = number,
  LJP_CUT_LIST(LJP_X)
#undef LJP_X
};

/* -- Why an event is not in the file -------------------------------------- */

#define LJP_LOSS_LIST(_)                                                       \
  _(RING_FULL, 1, "ring full")                                                 \
  _(TOO_BIG, 2, "record larger than the ring takes")                           \
  _(THROTTLE, 3, "sampler throttled itself")                                   \
  _(NESTED, 4, "signal while handling one")                                    \
  _(BUSY, 5, "VM in a state that cannot be sampled")                           \
  _(NO_MEMORY, 6, "writer out of memory")                                      \
  _(WRITE_ERROR, 7, "write error")                                             \
  _(STOPPING, 8, "pushed while the session stopped")                           \
  _(BAD_RECORD, 9, "record refused by the writer")                             \
  _(TRACK_FULL, 10, "table of sampled objects full")

enum ljp_loss {
#define LJP_X(name, number, text) LJP_LOSS_##name = number,
  LJP_LOSS_LIST(LJP_X)
#undef LJP_X
      LJP_LOSS_COUNT = 11
};

/* -- Time that no sample stands for, by reason ---------------------------- */

#define LJP_UNSAMPLED_LIST(_)                                                  \
  _(BLOCKED, 1, "the thread blocks the signal")                                \
  _(NO_TIMER, 2, "the thread has no timer")                                    \
  _(HANDLER, 3, "the program took the signal away")                            \
  _(NOT_FOUND, 4, "before the profiler found the thread")                      \
  _(NO_LIST, 5, "the list of threads cannot be read")                          \
  _(NO_ROOM, 6, "too many threads")                                            \
  _(LAST, 7, "after the thread's last sample")                                 \
  _(LOST, 8, "in samples that were lost")                                      \
  _(NO_LUA, 9, "before the thread ran Lua")                                    \
  _(NOT_ASKED, 10, "in a thread that is not to be sampled")                    \
  _(WRITER, 11, "in the profiler's own threads")                               \
  _(WAITING, 12, "waiting, and where cannot be read")

enum ljp_unsampled {
#define LJP_X(name, number, text) LJP_UNSAMPLED_##name = number,
  LJP_UNSAMPLED_LIST(LJP_X)
#undef LJP_X
      LJP_UNSAMPLED_COUNT = 13
};

/* -- Producers, VM states, events ------------------------------------------ */

#define LJP_PRODUCER_LIST(_)                                                   \
  _(WRITER, 0, "writer")                                                       \
  _(CPU, 1, "cpu")       /* Weight: ns of CPU time. */                         \
  _(WALL, 2, "wall")     /* Weight: ns of wall time. */                        \
  _(MEMORY, 3, "memory") /* Weight: bytes that the event stands for. */        \
  _(EVENTS, 4, "events") /* GC, traces, marks. */

enum ljp_producer_kind {
#define LJP_X(name, number, text) LJP_PRODUCER_##name = number,
  LJP_PRODUCER_LIST(LJP_X)
#undef LJP_X
};

/* What raises the signals of a thread. */
#define LJP_TIMER_LIST(_)                                                      \
  _(NONE, 0, "none")                                                           \
  _(PERF, 1, "perf")   /* A task-clock event. */                               \
  _(TRAP, 2, "trap")   /* Of older files. */                                   \
  _(POSIX, 3, "posix") /* Timers on the monotonic clock. */                    \
  _(TICK, 4, "tick")   /* A timer on the thread's CPU clock. */

enum ljp_timer {
#define LJP_X(name, number, text) LJP_TIMER_##name = number,
  LJP_TIMER_LIST(LJP_X)
#undef LJP_X
};

#define LJP_VMSTATE_LIST(_)                                                    \
  _(UNKNOWN, 0, "unknown")                                                     \
  _(INTERP, 1, "interpreter")                                                  \
  _(TRACE, 2, "compiled")                                                      \
  _(C, 3, "C")                                                                 \
  _(GC, 4, "GC")                                                               \
  _(EXIT, 5, "trace exit")                                                     \
  _(RECORD, 6, "recorder")                                                     \
  _(OPT, 7, "optimizer")                                                       \
  _(ASM, 8, "assembler")                                                       \
  _(HOST, 9, "outside")                                                        \
  _(BUILTIN, 10, "builtin")                                                    \
  _(WAITING, 11, "waiting")

enum ljp_vmstate {
#define LJP_X(name, number, text) LJP_VMSTATE_##name = number,
  LJP_VMSTATE_LIST(LJP_X)
#undef LJP_X
};

#define LJP_GC_PHASE_LIST(_)                                                   \
  _(PAUSE, 0, "pause")                                                         \
  _(PROPAGATE, 1, "propagate")                                                 \
  _(ATOMIC, 2, "atomic")                                                       \
  _(SWEEPSTRING, 3, "sweep strings")                                           \
  _(SWEEP, 4, "sweep")                                                         \
  _(FINALIZE, 5, "finalize")                                                   \
  _(CLOSED, 6, "closed")

enum ljp_gc_phase {
#define LJP_X(name, number, text) LJP_GC_##name = number,
  LJP_GC_PHASE_LIST(LJP_X)
#undef LJP_X
};

#define LJP_TRACE_WHAT_LIST(_)                                                 \
  _(START, 1, "start")                                                         \
  _(STOP, 2, "stop")                                                           \
  _(ABORT, 3, "abort")                                                         \
  _(FLUSH, 4, "flush")                                                         \
  _(FREE, 5, "free")                                                           \
  _(BLACKLIST, 6, "blacklist")                                                 \
  _(EXISTS, 7, "exists")

enum ljp_trace_what {
#define LJP_X(name, number, text) LJP_TRACE_##name = number,
  LJP_TRACE_WHAT_LIST(LJP_X)
#undef LJP_X
};

#define LJP_INTERVAL_WHY_LIST(_)                                               \
  _(USER, 1, "asked for")                                                      \
  _(THROTTLE, 2, "handling took too large a share")                            \
  _(RECOVER, 3, "load went down")                                              \
  _(LIMIT, 4, "more samples than the limit")

enum ljp_interval_why {
#define LJP_X(name, number, text) LJP_INTERVAL_##name = number,
  LJP_INTERVAL_WHY_LIST(LJP_X)
#undef LJP_X
};

#define LJP_EPOCH_WHY_LIST(_)                                                  \
  _(START, 1, "start")                                                         \
  _(SEGMENT, 2, "new segment")                                                 \
  _(TIME, 3, "time")                                                           \
  _(SIZE, 4, "size")                                                           \
  _(TABLE, 5, "stack table full")

enum ljp_epoch_why {
#define LJP_X(name, number, text) LJP_EPOCH_##name = number,
  LJP_EPOCH_WHY_LIST(LJP_X)
#undef LJP_X
};

#define LJP_NOTE_LIST(_)                                                       \
  _(INFO, 1, "info")                                                           \
  _(WARNING, 2, "warning")                                                     \
  _(ERROR, 3, "error")

enum ljp_note {
#define LJP_X(name, number, text) LJP_NOTE_##name = number,
  LJP_NOTE_LIST(LJP_X)
#undef LJP_X
};

#define LJP_MODULE_MAIN 0x1u /* The program itself. */
#define LJP_MODULE_VDSO 0x2u

#define LJP_TRACE_TRUNCATED 0x1u /* Not all of its code has markers. */

#define LJP_PROTO_UNKNOWN 0x1u /* Could not be described: names are empty. */
#define LJP_PROTO_MAIN 0x2u    /* Main function of a chunk. */
#define LJP_PROTO_VARARG 0x4u
#define LJP_PROTO_BLACKLISTED 0x8u /* In part: see the BLACKLIST event. */

#endif
