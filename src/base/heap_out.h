/*
** Between the walk over a VM's heap and what takes it: the walk knows LuaJIT,
** the taker knows the stream. Plain structs; both sides run in one thread,
** perhaps in a copy of the process in which no other thread exists. So neither
** side allocates memory, takes a lock or recurses.
*/
#ifndef LJP_HEAP_OUT_H
#define LJP_HEAP_OUT_H

#include <stddef.h>

#include "src/base/heap_format.h"

struct ljp_heap_object {
  uint64_t address;
  uint64_t bytes; /* Of its own memory block; parts are in the numbers. */
  uint8_t type;   /* enum ljp_mem_type */
  uint8_t flags;  /* enum ljp_heap_flag */
  uint64_t numbers[LJP_HEAP_MAX_NUMBERS];
  const char *text;
  size_t text_bytes;
};

struct ljp_heap_ctype {
  uint64_t number, bytes; /* bytes: 0 if not known. */
  uint64_t of;            /* The number of the type of its items or target. */
  uint8_t kind;           /* enum ljp_heap_ctype_kind */
};

/* About the VM, and about the whole snapshot. */
struct ljp_heap_head {
  uint64_t heap_bytes;             /* The VM's own count. */
  uint64_t slot_bytes, node_bytes; /* Of a stack or array; of a hash part. */
  uint8_t phase;                   /* enum ljp_gc_phase */
};

/* Takes the walk's calls: for each object object(), its references in order,
** then object_end(). false: taking has failed; the walk ends. */
struct ljp_heap_out {
  bool (*object)(struct ljp_heap_out *out, const struct ljp_heap_object *o);
  /* how: enum ljp_heap_how of shape PLAIN, RUN, SIGNED, BITS, LINE, and
  ** LJP_HEAP_WEAK. A target is never 0. */
  bool (*ref)(struct ljp_heap_out *out, unsigned how, uint64_t number,
              uint64_t target);
  bool (*field)(struct ljp_heap_out *out, unsigned how, uint64_t key,
                uint64_t target);
  bool (*named)(struct ljp_heap_out *out, unsigned how, const char *name,
                size_t name_bytes, uint64_t target);
  bool (*object_end)(struct ljp_heap_out *out);
  /* Between objects. */
  bool (*ctype)(struct ljp_heap_out *out, const struct ljp_heap_ctype *type);
  uint32_t text_limit; /* Bytes of a string's contents that are wanted. */
  uint64_t unreadable; /* What the walk has left out. */
};

#endif
