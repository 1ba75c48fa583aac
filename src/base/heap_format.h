/*
** The numbers of the stream's heap snapshots: flags of objects, how an object
** refers to another one, roots. doc/rfc/0007-heap-snapshots.md explains them;
** test_heap checks that the two agree. Writer and readers include this header.
**
** The lists are X-macros. The numbers are in files: they are only added, never
** changed.
*/
#ifndef LJP_HEAP_FORMAT_H
#define LJP_HEAP_FORMAT_H

#include "src/base/format.h"

/* Addresses of objects are multiples of this; the stream has them divided. */
#define LJP_HEAP_ALIGN_SHIFT 3
/* Of a string's contents, at most. */
#define LJP_HEAP_TEXT_MAX_BYTES 4096u
#define LJP_HEAP_MAX_NUMBERS 3

/* -- Objects --------------------------------------------------------------- */

/* First byte of each object: MEM_TYPE in bits 0-4; NONE: more references of an
** object whose others are in the record before. */
#define LJP_HEAP_TYPE_MASK 0x1fu
#define LJP_HEAP_HAS_FLAGS 0x20u /* A byte of flags follows. */
#define LJP_HEAP_HAS_REFS 0x40u  /* References follow, until END. */
#define LJP_HEAP_EXTRA 0x80u     /* For newer versions: u n, n bytes. */

#define LJP_HEAP_FLAG_LIST(_)                                                  \
  _(DEAD, 0x01, "dead")     /* Found dead by the collector, not yet freed. */  \
  _(PINNED, 0x02, "pinned") /* The collector never frees it. */                \
  _(FINAL, 0x04, "waits for its finalizer")                                    \
  _(INSIDE, 0x08, "inside") /* Its part lies in its own memory block. */       \
  _(CLOSED, 0x10, "closed") /* Upvalue. */                                     \
  _(WEAK_KEYS, 0x20, "weak keys")                                              \
  _(WEAK_VALUES, 0x40, "weak values")                                          \
  _(RUNNING, 0x80, "running") /* The thread that took the snapshot. */

enum ljp_heap_flag {
#define LJP_X(name, number, text) LJP_HEAP_##name = number,
  LJP_HEAP_FLAG_LIST(LJP_X)
#undef LJP_X
};

/* The numbers that an object of a type has after its size; names as in views.
** "-": there are no more. Types that are not here have none. */
#define LJP_HEAP_NUMBERS_LIST(_)                                               \
  _(STRING, 1, "length", "-", "-")                                             \
  _(TABLE, 2, "slots", "nodes", "-")                                           \
  _(FUNCTION, 2, "ffid", "code", "-")                                          \
  _(USERDATA, 2, "kind", "buffer_bytes", "-")                                  \
  _(CDATA, 1, "ctype", "-", "-")                                               \
  _(THREAD, 2, "slots", "status", "-")                                         \
  _(PROTO, 2, "first_line", "last_line", "-")                                  \
  _(TRACE, 3, "number", "code", "code_bytes")

static inline unsigned ljp_heap_numbers(unsigned type)
{
  switch (type) {
#define LJP_X(name, count, a, b, c)                                            \
  case LJP_MEM_TYPE_##name:                                                    \
    return count;
    LJP_HEAP_NUMBERS_LIST(LJP_X)
#undef LJP_X
  }
  return 0;
}

/* Does an object of this type have a text (a string's contents, the names of a
** prototype's upvalues)? */
static inline bool ljp_heap_has_text(unsigned type)
{
  return type == LJP_MEM_TYPE_STRING || type == LJP_MEM_TYPE_PROTO;
}

/* All bytes of an object with its parts. slot, node: the sizes that the HEAP
** record tells. */
static inline uint64_t ljp_heap_all_bytes(unsigned type, unsigned flags,
                                          uint64_t own, const uint64_t *numbers,
                                          uint64_t slot, uint64_t node)
{
  switch (type) {
  case LJP_MEM_TYPE_TABLE:
    if (!(flags & LJP_HEAP_INSIDE))
      own += numbers[0] * slot;
    return own + numbers[1] * node;
  case LJP_MEM_TYPE_THREAD:
    return own + numbers[0] * slot;
  case LJP_MEM_TYPE_USERDATA:
    return own + numbers[1];
  }
  return own;
}

/* -- References ------------------------------------------------------------ */

/* First byte of each reference: how in bits 0-5, and two flags. */
#define LJP_HEAP_HOW_MASK 0x3fu
#define LJP_HEAP_WEAK 0x40u     /* Does not keep the target alive. */
#define LJP_HEAP_WEAK_KEY 0x80u /* Does not keep the key alive. */

/* What stands behind the first byte:
**   PLAIN   target
**   RUN     u number of the first, u n (1 to 127), n targets
**   PAIR    key, target: two references
**   SIGNED  s number, target
**   BITS    u64, target
**   LINE    u line, target
**   TEXT    str, target
** A key is an object, coded as a target is. */
enum ljp_heap_shape {
  LJP_HEAP_SHAPE_NONE,
  LJP_HEAP_SHAPE_PLAIN,
  LJP_HEAP_SHAPE_RUN,
  LJP_HEAP_SHAPE_PAIR,
  LJP_HEAP_SHAPE_SIGNED,
  LJP_HEAP_SHAPE_BITS,
  LJP_HEAP_SHAPE_LINE,
  LJP_HEAP_SHAPE_TEXT
};
#define LJP_HEAP_RUN_MAX 127u

#define LJP_HEAP_HOW_LIST(_)                                                   \
  _(END, 0, NONE, "end")                                                       \
  _(KEY, 1, PLAIN, "key") /* Of an entry whose value is no object. */          \
  _(FIELD, 2, PAIR, "field")                                                   \
  _(INTEGER, 3, SIGNED, "integer key")                                         \
  _(NUMBER, 4, BITS, "number key")                                             \
  _(BOOLEAN, 5, SIGNED, "boolean key")                                         \
  _(POINTER, 6, BITS, "pointer key") /* Light userdata. */                     \
  _(ITEM, 7, RUN, "item")            /* Of an array part. */                   \
  _(METATABLE, 8, PLAIN, "metatable")                                          \
  _(ENVIRONMENT, 9, PLAIN, "environment")                                      \
  _(PROTOTYPE, 10, PLAIN, "prototype")                                         \
  _(UPVALUE, 11, RUN, "upvalue")                                               \
  _(VALUE, 12, PLAIN, "value") /* Of an upvalue. */                            \
  _(CONSTANT, 13, RUN, "constant")                                             \
  _(CHUNK, 14, PLAIN, "chunk name")                                            \
  _(TRACE, 15, PLAIN, "trace")                                                 \
  _(FRAME, 16, LINE, "frame") /* Its function. */                              \
  _(LOCAL, 17, TEXT, "local") /* Of the frame before. */                       \
  _(SLOT, 18, RUN, "slot")    /* Likewise, without a name. */                  \
  _(ROOT, 19, RUN, "root")                                                     \
  _(PART, 20, PLAIN, "part") /* Of a userdata, as the VM knows it. */          \
  _(TYPE_NAME, 21, RUN, "type name")

enum ljp_heap_how {
#define LJP_X(name, number, shape, text) LJP_HEAP_HOW_##name = number,
  LJP_HEAP_HOW_LIST(LJP_X)
#undef LJP_X
};

/* Numbers of newer versions have a shape by their range. */
#define LJP_HEAP_HOW_NEW_RUN 48u

static inline enum ljp_heap_shape ljp_heap_shape(unsigned how)
{
  switch (how) {
#define LJP_X(name, number, shape, text)                                       \
  case number:                                                                 \
    return LJP_HEAP_SHAPE_##shape;
    LJP_HEAP_HOW_LIST(LJP_X)
#undef LJP_X
  }
  return how < LJP_HEAP_HOW_NEW_RUN ? LJP_HEAP_SHAPE_PLAIN : LJP_HEAP_SHAPE_RUN;
}

/* The number of a ROOT reference. */
#define LJP_HEAP_ROOT_LIST(_)                                                  \
  _(MAIN_THREAD, 0, "main thread")                                             \
  _(GLOBALS, 1, "globals")                                                     \
  _(REGISTRY, 2, "registry")                                                   \
  _(NAMES, 3, "names of metamethods")                                          \
  _(TYPES, 4, "metatables of types")                                           \
  _(OTHER, 5, "other roots of the VM")                                         \
  _(RUNNING, 6, "running thread")                                              \
  _(RECORDED, 7, "trace being recorded")                                       \
  _(FFI, 8, "FFI")

enum ljp_heap_root {
#define LJP_X(name, number, text) LJP_HEAP_ROOT_##name = number,
  LJP_HEAP_ROOT_LIST(LJP_X)
#undef LJP_X
};

/* -- Targets --------------------------------------------------------------- */

/* A target that was coded before in the record may be in this table, which is
** empty at the record's beginning: a target's number is then its slot. */
#define LJP_HEAP_TABLE_BITS 10
#define LJP_HEAP_TABLE_SLOTS (1u << LJP_HEAP_TABLE_BITS)

/* The slot of an address that has been divided. */
static inline uint32_t ljp_heap_table_slot(uint64_t address)
{
  return (uint32_t)(address * UINT64_C(0x9e3779b97f4a7c15) >>
                    (64 - LJP_HEAP_TABLE_BITS));
}

/* -- C types --------------------------------------------------------------- */

/* What a C type is; others are not told. */
#define LJP_HEAP_CTYPE_LIST(_)                                                 \
  _(BOOL, 1, "bool")                                                           \
  _(INT, 2, "int")                                                             \
  _(UINT, 3, "uint")                                                           \
  _(FLOAT, 4, "float")                                                         \
  _(VOID, 5, "void")                                                           \
  _(STRUCT, 6, "struct")                                                       \
  _(UNION, 7, "union")                                                         \
  _(ENUM, 8, "enum")                                                           \
  _(POINTER, 9, "pointer")                                                     \
  _(REFERENCE, 10, "reference")                                                \
  _(ARRAY, 11, "array")                                                        \
  _(ANY_ARRAY, 12, "array of any length")                                      \
  _(COMPLEX, 13, "complex")                                                    \
  _(VECTOR, 14, "vector")                                                      \
  _(FUNCTION, 15, "function")                                                  \
  _(TYPEDEF, 16, "typedef")                                                    \
  _(SAME, 17, "same")   /* With qualifiers or another alignment. */            \
  _(CTYPE, 18, "ctype") /* What ffi.typeof() returns. */

enum ljp_heap_ctype_kind {
#define LJP_X(name, number, text) LJP_HEAP_CTYPE_##name = number,
  LJP_HEAP_CTYPE_LIST(LJP_X)
#undef LJP_X
};

/* -- How a snapshot was taken --------------------------------------------- */

#define LJP_HEAP_TAKEN_LIST(_)                                                 \
  _(COPY, 0, "in a copy of the process")                                       \
  _(PLACE, 1, "in place")                                                      \
  _(MOMENT, 2, "in a copy of the process at any moment")

enum ljp_heap_taken {
#define LJP_X(name, number, text) LJP_HEAP_TAKEN_##name = number,
  LJP_HEAP_TAKEN_LIST(LJP_X)
#undef LJP_X
};

#endif
