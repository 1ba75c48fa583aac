/*
** Coroutines that are suspended, and locals, of a VM that runs or hangs
** meanwhile: for a helper that tells what a program is doing (dump-stacks).
** Nothing is stopped and no lock is taken. All reads are fault-safe and bounded,
** so what changes under the reader gives a wrong answer at worst. The reader asks
** twice and compares.
**
** Any thread that does not block SIGSEGV and SIGBUS, after
** ljp_saferead_install().
*/
#ifndef LJP_GUEST_COROUTINES_H
#define LJP_GUEST_COROUTINES_H

#include "src/luajit/frames.h"

/* A frame as the Lua thread's own stack has it. */
struct ljp_lua_frame {
  uint64_t word; /* of src/base/format.h */
  uint64_t base;
  uint64_t proto; /* 0: not a Lua function's */
  uint64_t pc;    /* behind the instruction; 0: not known */
};

/* Where the frames of a Lua thread are read from. */
struct ljp_lua_from {
  uint64_t L;
  uint64_t base; /* 0: as the thread itself knows it */
  uint64_t pc;   /* of the innermost frame; 0: not known */
};

/* Reads the frames, innermost first, past all C boundaries. Returns their
** number; *cut says whether they are all. */
uint32_t ljp_lua_frames(const struct ljp_lua_from *from,
                        struct ljp_lua_frame *out, uint32_t room,
                        enum ljp_cut *cut);

/* Where the Lua thread that runs in a VM can be read; regs: of the machine's
** thread that runs it. False: it runs compiled code, whose values are in
** registers, or nothing runs. */
bool ljp_lua_running(uint64_t g, const struct ljp_regs *regs,
                     struct ljp_lua_from *from);

/* Of a stack between two addresses: the registers at the return from the C
** function that a VM has called innermost there. For a walk that has lost its way
** above. False: no VM runs there, or compiled code has called. */
bool ljp_lua_return(uint64_t low, uint64_t high, struct ljp_regs *regs);

/* Calls `each` for each local variable of a frame. value: as text, with a type's
** name for what is no plain value; no metamethod is called. */
void ljp_lua_locals(const struct ljp_lua_frame *frame,
                    void (*each)(void *ctx, const char *name,
                                 const char *value),
                    void *ctx);

struct ljp_lua_coroutine {
  uint64_t L;
  uint32_t vm;
  bool started;
  uint64_t function; /* of one that has not started: its frame, or 0 */
};

struct ljp_lua_search {
  uint64_t until_ns; /* the search ends then (ljp_clock_ns()) */
  uint32_t most;     /* coroutines */
  bool (*each)(void *ctx, const struct ljp_lua_coroutine *coroutine);
  void *ctx;
  /* Results. */
  uint64_t objects; /* that were looked at */
  uint32_t found;
  bool whole; /* all objects of all VMs were looked at */
};

/* Looks for suspended coroutines in all VMs. */
void ljp_lua_search(struct ljp_lua_search *search);

#endif
