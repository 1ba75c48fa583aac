/*
** The writer's questions to the owner of a session. src/ knows nothing of Lua,
** so the profiler explains what a prototype reference, a trace id or an ffid
** stands for. All calls come from the writer thread, which holds no lock. They
** must be quick, must not call into the session, and copy the answer into *out,
** which is zeroed before. False: not known, or no longer; the frame is written
** without a name.
**
** An id never comes to mean something else. A reference may, but only as
** follows. A reference that was pushed must stay describable until the writer
** has drained it. If a prototype is freed before a round begins, every entry
** with its reference has been drained when the next round ends. (Not the same
** round: a ring that is new to a round is drained by the round after it.) Then
** gone() returns the reference and the writer forgets it. The reference may be
** given to another prototype from the next call of gone() on.
*/
#ifndef LJP_DESCRIBE_H
#define LJP_DESCRIBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LJP_NAME_BYTES = 1024 };

struct ljp_proto_info {
  uint64_t id; /* Monotonic, never an address, never 0. */
  uint32_t first_line, last_line;
  uint32_t flags;             /* LJP_PROTO_* */
  char chunk[LJP_NAME_BYTES]; /* As Lua has it: "@file", "=name" or source. */
  char name[LJP_NAME_BYTES];  /* Of the function, if known. */
};

struct ljp_trace_info {
  uint32_t vm;
  uint32_t number;                          /* LuaJIT's, which it uses again. */
  uint64_t parent, parent_exit, root, link; /* Trace ids, 0: none. */
  uint64_t place; /* Where it starts: frame word of kind LUA, or 0. */
  uint64_t code_address, code_bytes;
  char link_type[64];
  uint32_t ir_count, snapshots, marks, marks_cut;
  uint32_t flags; /* LJP_TRACE_* */
};

struct ljp_describe {
  void *ctx;
  bool (*proto)(void *ctx, uint32_t ref, struct ljp_proto_info *out);
  bool (*trace)(void *ctx, uint64_t id, struct ljp_trace_info *out);
  bool (*builtin)(void *ctx, uint64_t ffid, char name[LJP_NAME_BYTES]);
  /* Keys and values in turn, sorted by key, each with a NUL. May be NULL. */
  bool (*labels)(void *ctx, uint64_t id, char text[LJP_NAME_BYTES],
                 size_t *bytes);
  /* Libraries were loaded or unloaded. Also called once at the start. May be
  ** NULL. */
  void (*modules_changed)(void *ctx);
  /* The next three may be NULL; then no reference is ever used again. */
  /* A round begins: it, or the next one, drains what was pushed before. */
  void (*round)(void *ctx);
  /* Gives references that the writer must forget; 0: no more. */
  size_t (*gone)(void *ctx, uint32_t *refs, size_t room);
  /* The writer has ended and asks no more. */
  void (*end)(void *ctx);
};

#endif
