/*
** Process: what /proc says about a process and its threads, and its memory.
** Nothing is trusted: the process may end or change at any time, and another
** may get its number.
*/
#ifndef LJP_TOOLS_PROCESS_H
#define LJP_TOOLS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { LJP_COMM_BYTES = 64 };

struct ljp_proc_status {
  char comm[LJP_COMM_BYTES];
  char state; /* R, S, D, T, t, Z ... */
  pid_t tgid, parent, tracer;
  pid_t ns_pid; /* its number in its own namespace */
  uid_t uid;    /* the effective one */
  int seccomp;  /* 0: none, 1: strict, 2: a filter */
  bool shadow_stack;
  uint64_t pending, blocked; /* signals, a bit each; pending for any thread */
};

/* tid: 0, or a thread of the process. False: there is none. */
bool ljp_proc_status(pid_t pid, pid_t tid, struct ljp_proc_status *out);

/* Threads, the leader first. Returns their number, at most `room`. */
unsigned ljp_proc_threads(pid_t pid, pid_t *tids, unsigned room);

/* Where a thread waits in a system call. */
struct ljp_proc_place {
  uint64_t rsp, rip;
};

/* The system call in which the thread waits, and where; -1: it runs, or this
** cannot be read. at may be NULL. */
long ljp_proc_call(pid_t pid, pid_t tid, struct ljp_proc_place *at);

/* Where the link /proc/PID/NAME leads; "" if it cannot be read. */
void ljp_proc_link(pid_t pid, const char *name, char *out, size_t room);

/* The command line, arguments separated by spaces. */
void ljp_proc_command(pid_t pid, char *out, size_t room);

struct ljp_mapping {
  uint64_t low, high, offset;
  uint64_t device, inode; /* inode 0: no file */
  bool read, write, execute;
  char *path; /* may be "" */
};

struct ljp_maps {
  struct ljp_mapping *list;
  size_t count;
};

/* Returns 0 or an errno. Threads of the kernel have no mappings. */
int ljp_maps_read(struct ljp_maps *maps, pid_t pid);
void ljp_maps_free(struct ljp_maps *maps);
/* The mapping that has the address; NULL: none. */
const struct ljp_mapping *ljp_maps_at(const struct ljp_maps *maps, uint64_t at);
/* Are these bytes in mappings that follow each other and can be written? */
bool ljp_maps_writable(const struct ljp_maps *maps, uint64_t low,
                       uint64_t high);

/* Memory of the process. False: not all of it; errno says why. */
bool ljp_memory_read(pid_t pid, uint64_t at, void *to, size_t bytes);

/* The memory of the program that the process runs now, as a descriptor: when the
** process has executed another program, nothing can be read or written by it.
** -1: errno says why. */
int ljp_memory_open(pid_t pid);
bool ljp_memory_get(int memory, uint64_t at, void *to, size_t bytes);
bool ljp_memory_put(int memory, uint64_t at, const void *from, size_t bytes);

#endif
