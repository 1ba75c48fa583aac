/*
** Followed VMs: those whose memory a session records. Each has a recorder with
** a producer and remembered stacks of its own, because VMs allocate on several
** threads at the same time. Used by memprof.c, under its lock.
**
** A VM joins and leaves on its own thread, since no other thread may exchange
** its allocator. At the end of a session, the recorders of VMs that other
** threads may be running are only switched off; each of these VMs removes its
** recorder when its thread comes by again (the collector's next phase,
** lua_close()).
**
** The recorder of a closed VM serves a later VM, with its producer and its
** memory. When the program forks, another thread may be in the middle of this
** code, so the lists are whole after each single store.
*/
#ifndef LJP_MEMORY_FOLLOWED_H
#define LJP_MEMORY_FOLLOWED_H

#include "profilers/memory/record.h"
#include "src/session/session.h"

struct ljp_follow {
  struct ljp_session *session;
  uint64_t sample_bytes; /* 0: every event */
  uint32_t max_samples;  /* a second, by a VM; 0: no limit */
  bool told_at_once; /* phases are not only noted: snapshots wait for them */
  bool native;
  bool shared; /* the ids of VMs are in the table of session/vms.h */
  uint32_t depth;
};

enum { LJP_FOLLOWED_MAX = 1024 /* VMs at a time */ };

/* A session begins: forgets the counts of the one before. */
void ljp_followed_begin(const struct ljp_follow *how);

/* Gives the VM an id in the stream, unless it has one. */
enum ljp_status ljp_followed_define(uint32_t number, uint32_t *id);

/* Does so for all VMs of the process. */
void ljp_followed_define_all(void);

/* Puts a recorder between the VM and its allocator, unless there is one. On the
** VM's own thread. LJP_ERR_LIMIT: too many VMs. */
enum ljp_status ljp_followed_add(struct lua_State *L);

/* The VM is about to free its memory: its recorder, if any, goes. On the VM's own
** thread. */
void ljp_followed_gone(struct lua_State *L);

/* Removes the stub (src/luajit/stubs.h), and the recorder of a session that another
** thread has ended, if any. On the VM's own thread. */
void ljp_followed_clear(struct lua_State *L);
/* How many of those there are. */
uint32_t ljp_followed_lingering(void);

/* Ends the recording of all VMs. L: a VM of this thread, or NULL. False: a thread
** is stuck in a recorder, so what that recorder uses is never freed. */
bool ljp_followed_stop(struct lua_State *L);

/* After fork(), in the child. */
void ljp_followed_forked(bool recording);

/* Sums over the session's VMs, so far. heap_bytes: in use now. */
void ljp_followed_counts(struct ljp_memprof_counts *sums, uint64_t *heap_bytes);
/* The largest mean distance between samples that a VM has at present. */
uint64_t ljp_followed_sample_bytes(void);

#endif
