/*
** What the writer asks the owner of a session: src/ knows nothing of Lua, so
** the profiler tells what a prototype reference, a trace id, an ffid stand for.
** All calls come from the writer thread, while no lock of ours is held. They
** must be quick, must not call into the session, and copy into *out (which
** comes zeroed). False: not known (any more); the frame stays, without a name.
**
** The owner's part: an id is never used for something else. A reference may be,
** but what was pushed stays describable until the writer has drained it, and
** said so: of what goes before a round begins, everything is drained when the
** next round ends. (The next: rings that are new to a round are drained by the
** one behind it.) Then gone() gives its reference, the writer forgets it, and it
** may be used again from when gone() is called the next time.
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
  uint32_t number;                          /* LuaJIT's, reused. */
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
  /* Libraries came or went (also once at the start); may be NULL. */
  void (*modules_changed)(void *ctx);
  /* A round begins: what is pushed up to now is drained in it or in the next.
  ** References to be forgotten, 0: no more. The writer has ended, and asks no
  ** more. All may be NULL: then no reference is ever used again. */
  void (*round)(void *ctx);
  size_t (*gone)(void *ctx, uint32_t *refs, size_t room);
  void (*end)(void *ctx);
};

#endif
