/*
** The state of the memory profiler, under its lock. Shared by memprof.c (life
** cycle) and status.c.
*/
#ifndef LJP_MEMPROF_STATE_H
#define LJP_MEMPROF_STATE_H

#include "profilers/memory/memprof.h"

enum { LJP_SNAPSHOT_NOW = 1 };

struct ljp_memprof {
  struct ljp_profiler_lock lock;
  bool running, ever, failed;
  bool unwritten;     /* the output has failed */
  bool replaced;      /* the program has put another allocator on top */
  uint32_t owner;     /* number of the VM that may stop it; 0: any */
  _Atomic bool meets; /* VMs that come by have something to do */
  struct ljp_memprof_options options;
  char path[LJP_OUTPUT_PATH_BYTES];
  struct ljp_session *session;
  struct ljp_stopper *stopper; /* of a session of our own that is limited */
  struct ljp_guest_hold hold;  /* of a session of our own */
  bool holds_traces;
  _Atomic bool
      closing; /* a client's session writes its end, without the lock */
  struct ljp_producer *events; /* for events outside of a VM's thread */
  uint64_t session_number;     /* 1, 2 ... in this process */
  /* The VM of which snapshots are taken by the session itself. Its main thread,
  ** until it is closed or its last snapshot is taken; &errno of the thread that
  ** started the session; whether another thread has run the VM since. */
  uint32_t snapshot_vm;
  struct lua_State *snapshot_main;
  const int *snapshot_home;
  _Atomic bool snapshot_moved;
  /* When the VM's thread is to take one; 0: not. LJP_SNAPSHOT_NOW: the session's
  ** time is over. */
  _Atomic uint64_t snapshot_due_ns;
  struct ljp_memprof_counts counts; /* of the last session */
  uint64_t bytes;
};
extern struct ljp_memprof ljp_memprof;

/* The rest is called with the lock. */

/* On the VM's own thread: it removes the recorder of an earlier session, and
** joins the present one. Releases the lock. */
void ljp_memprof_meet_locked(struct lua_State *L);

/* Any thread: VMs that have something to do, or may have, shall do it at their
** next allocation if the session is a client's. Others get their allocator
** back. */
void ljp_memprof_reach_vms(void);

/* L: a VM of this thread, or NULL. */
enum ljp_status ljp_memprof_stop_locked(struct lua_State *L,
                                        struct ljp_failure *why);

#endif
