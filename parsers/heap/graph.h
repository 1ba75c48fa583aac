/*
** The graph of a heap snapshot (RFC 7): objects with their sizes, references with
** their ways, dominators and retained sizes, and a shortest path from a root to
** each object. The file is read twice: objects first, then references, which
** name their targets by address.
**
** Node 0 stands for all that keeps objects alive. It refers to the parts of the
** VM (of which one has the roots), to pinned objects and to those that wait for
** their finalizers. At most some 100 bytes an object with three references. One
** thread.
*/
#ifndef LJP_PARSERS_HEAP_GRAPH_H
#define LJP_PARSERS_HEAP_GRAPH_H

#include "parsers/base/str.h"
#include "parsers/stream/item.h"
#include "src/base/status.h"

#define LJP_GRAPH_ERROR_BYTES 320
#define LJP_GRAPH_MAX_NODES (UINT32_C(1) << 31)
#define LJP_GRAPH_BUILTIN_BYTES 64u
#define LJP_GRAPH_MAX_CTYPES 65536u
#define LJP_GRAPH_MAX_BUILTINS 256u /* An ffid is a byte. */

/* A node whose size does not fit into small_bytes[]. */
struct ljp_graph_large {
  uint32_t node;
  uint64_t bytes;
};

/* A C type; kind 0: not in the snapshot. */
struct ljp_graph_ctype {
  uint64_t bytes;
  uint32_t of;
  uint32_t name; /* Its string's node; 0: none. */
  uint8_t kind;  /* enum ljp_heap_ctype_kind */
  bool defined;  /* The name comes from a typedef. */
};

struct ljp_graph {
  uint32_t count, room; /* Nodes. */
  uint64_t *address;
  uint32_t *small_bytes; /* See ljp_graph_own(). */
  uint8_t *type, *flags;
  /* By type: the place of a text (STRING, PROTO), an ffid (FUNCTION), a status
  ** (THREAD), the number of a C type (CDATA). */
  uint32_t *detail;
  struct ljp_graph_large *large; /* By node. */
  uint32_t large_count, large_room;
  /* References of node i: first[i] ... first[i + 1] - 1. */
  uint32_t *first, *target;
  uint8_t *how; /* enum ljp_heap_how, LJP_HEAP_WEAK */
  /* By how: the node of the key, a number (INTEGER as int32_t, or saturated), the
  ** place of the name in texts[]. */
  uint32_t *name;
  size_t ref_count, ref_room;
  char *texts; /* Each: 4 bytes of length, then the bytes. 0: no text. */
  size_t texts_len, texts_room;
  char (*builtins)[LJP_GRAPH_BUILTIN_BYTES]; /* By ffid; NULL: no names. */

  struct ljp_graph_ctype *ctypes; /* By number. */
  uint32_t ctype_count, ctype_room;
  uint32_t ctypes_at; /* The part of the VM that has their names; 0: none. */

  uint32_t *dominator; /* LJP_DOMINATED_BY_NONE: garbage. */
  uint64_t *retained;
  /* The node before on a shortest path, and by which reference it holds this
  ** one; UINT32_MAX: nothing holds it. */
  uint32_t *holder, *held_by;

  struct ljp_rec_heap head;
  struct ljp_rec_heap_end end;
  uint64_t time_ns, pid; /* When it was taken, and of which process. */
  uint64_t wall_ns;      /* The same time by the wall clock; 0: not known. */
  uint64_t first_ffid;   /* Of the session, in a merged file. */
  unsigned processes;    /* Of the file: 0, 1, 2 (or more). */
  uint32_t number;       /* 1: the first snapshot of the file. */
  uint32_t snapshots;    /* Of the file. */
  uint32_t before;       /* The number of the VM's snapshot before; 0: none. */
  uint64_t missing_refs; /* To objects that are not in the snapshot. */
  bool ended;            /* There is a HEAP_END. */
  bool in_session;       /* A session's events have the snapshot's place. */
  bool any_begun;        /* A session has begun a snapshot, maybe in vain. */
  char error[LJP_GRAPH_ERROR_BYTES];
};

/* Reads a snapshot of a file: the first one is number 1; 0: the last one. On
** failure graph->error says why. */
enum ljp_status ljp_graph_load(struct ljp_graph *graph, const char *path,
                               uint32_t number);
/* The same from bytes in memory, which may go afterwards. */
enum ljp_status ljp_graph_load_memory(struct ljp_graph *graph, const void *data,
                                      size_t size, uint32_t number);
void ljp_graph_fini(struct ljp_graph *graph);

/* What is at a place in texts[]. */
struct ljp_str ljp_graph_text(const struct ljp_graph *graph, uint32_t place);

/* The contents of a string, as far as the snapshot has them. Nodes of other
** types have none. */
struct ljp_str ljp_graph_string(const struct ljp_graph *graph, uint32_t node);
/* A prototype's first line, and the names of its upvalues, each with a NUL. */
uint32_t ljp_graph_line(const struct ljp_graph *graph, uint32_t proto);
struct ljp_str ljp_graph_upvalues(const struct ljp_graph *graph,
                                  uint32_t proto);
/* LuaJIT's own name of a builtin; empty: not known, or no builtin. */
struct ljp_str ljp_graph_builtin(const struct ljp_graph *graph,
                                 uint32_t function);

/* The bytes of a node itself, with its parts. */
uint64_t ljp_graph_own(const struct ljp_graph *graph, uint32_t node);

static inline bool ljp_graph_is_held(const struct ljp_graph *graph,
                                     uint32_t node)
{
  return graph->holder[node] != UINT32_MAX;
}

/* The first reference of a kind; UINT32_MAX: there is none. */
uint32_t ljp_graph_ref(const struct ljp_graph *graph, uint32_t node,
                       enum ljp_heap_how how);

static inline unsigned ljp_graph_how(const struct ljp_graph *graph,
                                     uint32_t ref)
{
  return graph->how[ref] & LJP_HEAP_HOW_MASK;
}

#endif
