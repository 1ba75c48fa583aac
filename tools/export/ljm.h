/*
** The export of memory events for Tarantool's memprof tools. Their format says
** where an event happened, as one line, C function or trace; it has no stacks.
**
** The export needs each event, not sums. So it takes the events while the
** profile is made (ljm_events.c, by the option observe): the site of an event
** becomes an entry, which is found again by its key; site and sizes go into a
** temporary file. When all names are known (ljm.c), the table of symbols is
** written, then the events from the temporary file with the addresses of their
** sites. One thread.
*/
#ifndef LJP_TOOLS_LJM_H
#define LJP_TOOLS_LJM_H

#include <stdio.h>

#include "parsers/base/index.h"
#include "parsers/base/strings.h"
#include "tools/export/tarantool.h"

/* Kinds of entries: frame kinds of the format, and four more. */
enum { LJP_LJM_AT_VM = 0x40, LJP_LJM_FUNCTION, LJP_LJM_MODULE, LJP_LJM_START };

/* A site, or what sites refer to: a Lua function, a module, the start of traces
** with one number. The first three members are the key: as in a stack node; the
** id of function or module; START: the function's entry, number and line. */
struct ljp_ljm_entry {
  uint64_t ref, value;
  uint8_t kind;
  uint32_t owner;   /* LUA, START: the function; CFUNC: the module; 0: none. */
  uint32_t text;    /* Function: chunk; BUILTIN: name; module: path. */
  uint64_t address; /* Module: its bias. */
  uint64_t line, number;

  /* Modules only; symbols is the handle, when names are looked up. */
  uint32_t build_id, symbols;
  uint64_t span, flags;
};

#define LJP_LJM_CACHE 4096u
struct ljp_ljm_cached {
  uint64_t stack;
  uint32_t entry; /* + 1; 0: free. */
  bool compiled;
};

struct ljp_ljm {
  FILE *spool;
  struct ljp_ljm_entry *entries; /* [0]: INTERNAL. */
  uint32_t count, room;
  struct ljp_index index;
  struct ljp_strings strings;
  struct ljp_tarantool_traces traces;
  struct ljp_ljm_cached cache[LJP_LJM_CACHE];
  uint64_t events, failed;
};

/* NULL: no memory, or no temporary file (errno). */
struct ljp_ljm *ljp_ljm_new(void);
void ljp_ljm_free(struct ljp_ljm *ljm);

/* For ljp_profile_options.observe; ctx is the struct ljp_ljm. */
enum ljp_status ljp_ljm_take(void *ctx, const struct ljp_reader *reader,
                             const struct ljp_item *item);

#endif
