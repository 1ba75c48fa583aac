/*
** Stacks of a joined program, as its helper writes them for `ljprof dump-stacks`:
** lines of fields that tabs separate, in the client's file. In a field, bytes
** below 32 and 127 are '?'. The client trusts no line.
*/
#ifndef LJP_BASE_JOIN_STACKS_H
#define LJP_BASE_JOIN_STACKS_H

/* Name of the line, and its fields behind the name. The first line is HEAD, the
** last one END. Frames follow their thread or coroutine, innermost first, and
** locals follow their frame. Numbers are decimal, addresses hexadecimal. */
#define LJP_JOIN_STACKS_LIST(_)                                                \
  _(HEAD, "ljprof-stacks", 1) /* 1 */                                          \
  _(THREAD, "thread", 8) /* tid, state as in /proc, VM, vmstate, cut,    \
                               ** flags, wchan, name */     \
  _(COROUTINE, "coroutine",                                                    \
    5) /* VM, address, 1 if it has begun, cut, flags   \
                               */                       \
  _(LUA, "lua",                                                                \
    6) /* name, chunk, line, first line, LJP_PROTO_*, 1 if inlined \
                   */           \
  _(BUILTIN, "builtin", 1) /* name */                                          \
  _(C, "c", 1)             /* address of the function */                       \
  _(HOST, "host", 2)   /* address, 1: of an instruction, not behind a call \
                           */   \
  _(VM, "vm", 1)       /* routine of the VM */                                 \
  _(GAP, "gap", 1)     /* why frames are missing here: enum ljp_cut */         \
  _(LOCAL, "local", 2) /* name, value */                                       \
  _(END, "end", 2)     /* objects looked at, 1 if these are all */

enum ljp_join_stacks_line {
#define LJP_X(name, text, fields) LJP_STACKS_##name,
  LJP_JOIN_STACKS_LIST(LJP_X)
#undef LJP_X
      LJP_STACKS_LINES
};

/* Flags of threads and coroutines. */
enum {
  LJP_STACKS_CHANGING = 1, /* it went on while it was read */
  LJP_STACKS_RUNS = 2      /* it ran, and its stack is not known */
};

#endif
