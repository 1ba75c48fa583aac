/*
** What other profilers see of labels (OTEP 4947, a proposal of OpenTelemetry). Each set
** has a record, which threads show while they work with the set (src/luajit/publish.h).
** The process context (process_context.h) names the keys. Any thread may call; a
** function that takes a VM is called on the VM's own thread.
**
** Bounded: a record for each set of labels at most (labels.h), of 640 bytes, and 256
** keys. What does not fit is left out, and counted.
*/
#ifndef LJP_PUBLISHED_H
#define LJP_PUBLISHED_H

#include <stdbool.h>
#include <stdint.h>

#include "profilers/session/failure.h"

struct lua_State;

/* The VM publishes its labels from now on, or no longer. */
enum ljp_status ljp_publish_start(struct lua_State *L, struct ljp_failure *why);
void ljp_publish_stop(struct lua_State *L);

struct ljp_publish_status {
  uint32_t sets; /* with a record */
  uint32_t keys;
  uint64_t cut; /* labels of these sets that are cut or left out */
};

/* False: the VM does not publish. */
bool ljp_publish_status(struct lua_State *L, struct ljp_publish_status *status);

#endif
