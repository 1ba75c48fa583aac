/*
** Record: shared by the parts of ljprof record. options.c fills and checks the
** plan, look_up.c finds the program, output.c the file to write, record.c runs
** the program, joined.c joins a running one, children.c its children, files.c finds the files, outcome.c reports the result.
*/
#ifndef LJP_TOOLS_RECORD_H
#define LJP_TOOLS_RECORD_H

#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "src/base/settings.h"

struct ljp_record_plan {
  const char *command; /* for messages: "record", or which takes its options */
  const char *output;  /* NULL: not given. */
  struct ljp_settings set;
  const char *pid; /* of a running program; NULL: one is to be run */
  uint64_t room;   /* bytes on disk; see ljp_join_options(). 0: no limit */
  bool force, children, embed, jitdump;
  bool preload;      /* into the program and all that it starts */
  bool preload_once; /* into the program only */
  struct stat file;  /* the program's; st_ino 0: not known */
  char **program;
  char folder[PATH_MAX]; /* Of our library, LJP_LIBRARY_NAME. */
  char luajit[PATH_MAX]; /* Our command luajit, beside this one. */
  char here[PATH_MAX];   /* A program's name in this folder. */
  char path[PATH_MAX];   /* Absolute: the program may change its directory. */
  struct stat before;    /* The file before the run; st_ino 0: none. */
  struct timespec began;
  uint64_t began_mono_ns; /* The same by ljp_record_now(). */
  /* The end of the recording, by ljp_record_now(); 0: none. */
  uint64_t until_ns;
  bool also;       /* As in struct ljp_join_session. */
  bool ran_on;     /* The program was still running then. */
  double late_s;   /* Heap snapshots have kept the end waiting; its time. */
  uint64_t events; /* Samples and memory events that were recorded. */
  bool empty;      /* Without any, so that there is nothing to report. */
  pid_t program_pid;
  /* told.c: what the program's processes tell of themselves goes into this
  ** pipe; -1: there is none. */
  int told[2];
  pid_t told_pid; /* Whose descriptors they are. */
  struct stat told_pipe;
};

/* What the program's processes have told. */
enum { LJP_TOLD_REFUSALS = 8, LJP_TOLD_FORKS = 64 };
struct ljp_told {
  bool own;        /* the program has loaded the library */
  unsigned others; /* processes that it started and that have done so, too */
  unsigned refusals;
  char refused[LJP_TOLD_REFUSALS][600];
  char another[600]; /* the path of a LuaJIT beside ours; "": none */
  unsigned forks;    /* children of fork() that were not to be recorded */
  pid_t forked[LJP_TOLD_FORKS];
};

enum { LJP_EXIT_CANNOT_RUN = 126, LJP_EXIT_NO_PROGRAM = 127 };

/* For a command that shows a running program, such as top: the options that it
** takes, too, and their check. The first function fills at most
** LJP_RECORD_VIEW_FLAGS and returns their number; the second one returns -1, or
** the exit code after reporting an error. plan->command is set. */
enum { LJP_RECORD_VIEW_FLAGS = LJP_SETTING_COUNT + 2 };
struct ljp_flag;
unsigned ljp_record_view_flags(struct ljp_record_plan *plan,
                               struct ljp_flag *flags);
int ljp_record_view_check(struct ljp_record_plan *plan);

/* The request to a program that is joined. False: it is too long. */
bool ljp_record_joined_request(const struct ljp_record_plan *plan, char *out,
                               size_t room);
/* joined.c: records a running program. Returns the exit code. */
int ljp_record_joined(struct ljp_record_plan *plan);
/* A session that writes to the path of the plan, or to fd if that is not -1. As
** ljp_join_session_run(). */
struct ljp_talk;
enum ljp_join_end;
int ljp_record_session(const struct ljp_record_plan *plan,
                       struct ljp_talk *talk, int fd,
                       void (*started)(void *ctx), void *ctx,
                       enum ljp_join_end *end);

/* children.c: makes a process that records all that descend from the program.
** Returns its number, or -1. */
pid_t ljp_record_children(const struct ljp_record_plan *plan,
                          const struct ljp_talk *talk);
/* Waits until these recordings have ended. now: ends them. */
void ljp_record_children_end(pid_t family, bool now);

/* look_up.c: finds the file that the command names, and puts our luajit before
** a Lua script. -1: go on; else the exit code: there is nothing to run, which
** has been reported. */
int ljp_record_look_up(struct ljp_record_plan *plan);
/* Finds a program in the folders of PATH. */
bool ljp_record_in_path(const char *name, char out[PATH_MAX]);
/* What follows the last slash. */
const char *ljp_record_base(const char *path);
/* The name of the script or program, without ".lua". As snprintf(). */
int ljp_record_program_name(const struct ljp_record_plan *plan, char *out,
                            size_t room);
/* The name of the file to write if the user gives none. As snprintf(). */
int ljp_record_default_name(const struct ljp_record_plan *plan, char *out,
                            size_t room);

/* output.c: finds the file to write. -1: go on; else the exit code: it cannot
** be written, or must not be replaced, which has been reported. */
int ljp_record_find_output(struct ljp_record_plan *plan);

/* stored.c: the same for a store: makes the folder, and gives the service its
** name. */
int ljp_record_find_store(struct ljp_record_plan *plan);
/* What the recording has left in the store. */
struct ljp_stored {
  size_t files;
  unsigned processes; /* Sessions; counted exactly up to 64. */
  uint64_t bytes;
};
/* Calls take for each file, in order. False: one of them is not readable, which
** has been reported. */
bool ljp_record_stored(const struct ljp_record_plan *plan,
                       bool (*take)(void *ctx, const char *path,
                                    uint32_t session),
                       void *ctx, struct ljp_stored *found);

/* program.c: finds the file that will be executed, and how our library gets
** into it (plan->preload_once). -1: go on; else the exit code: the program
** cannot be recorded, which has been reported. */
int ljp_record_find_program(struct ljp_record_plan *plan);

/* loader.c: would the program's loader find a LuaJIT that is not ours, although
** LD_LIBRARY_PATH leads to ours? path: of an executable that asks for glibc's
** loader. */
bool ljp_record_ask_loader(const struct ljp_record_plan *plan,
                           const char *path);

/* loader.c: sets what leads the loader to our library. */
bool ljp_record_set_loader(const struct ljp_record_plan *plan);

/* told.c: begins to listen, before the program runs. */
void ljp_record_listen(struct ljp_record_plan *plan);
/* Reports that nothing was recorded, and why. */
void ljp_record_tell_nothing(const struct ljp_record_plan *plan,
                             const struct ljp_told *told);
/* After the end: what the processes have told. */
void ljp_record_hear(struct ljp_record_plan *plan, struct ljp_told *told);
/* Says which processes were not recorded, and why. */
void ljp_record_tell_refusals(const struct ljp_told *told);

extern const char ljp_record_help[]; /* help.c */

/* -1: go on; else the exit code. */
int ljp_record_options(struct ljp_record_plan *plan, int argc, char **argv);

static inline bool ljp_record_rotates(const struct ljp_record_plan *plan)
{
  return plan->set.value[LJP_SETTING_ROTATE_BYTES] ||
         plan->set.value[LJP_SETTING_ROTATE_SECONDS] ||
         ljp_settings_store(&plan->set);
}

/* The seconds that the recording may take; 0: no limit. */
double ljp_record_duration(const struct ljp_record_plan *plan);
/* Heap snapshots are wanted; the seconds between them, 0: at the end only. */
bool ljp_record_snapshots(const struct ljp_record_plan *plan);
double ljp_record_snapshot_every(const struct ljp_record_plan *plan);

/* Writes the value of LJPROF_RECORD to out. False: not enough room. */
bool ljp_record_request(const struct ljp_record_plan *plan, char *out,
                        size_t room);

/* files.c: the kind of a file by its name. */
enum ljp_record_name {
  LJP_NAME_OTHER,
  LJP_NAME_SEGMENT,  /* PATH.sN */
  LJP_NAME_CHILD,    /* PATH.PID, PATH.PID.PID ... and its segments. */
  LJP_NAME_EXECUTED, /* PATH.PID-N and its segments: what a process executed. */
  LJP_NAME_TEMPORARY /* .ljp-PID-N behind one of these (newfile.h). */
};

/* Finds regular files of this kind that are not older than the start of the
** program, and puts them first in found->gl_pathv, sorted by session. Returns
** their number. If it is not 0, the caller frees found. */
size_t ljp_record_files(const struct ljp_record_plan *plan,
                        enum ljp_record_name kind, glob_t *found);

/* The length of the name without ".sN": of all segments of a session. */
size_t ljp_record_stem(const char *path);

/* Removes temporary files of processes that were killed or executed another
** program. There are some only where files cannot be without a name. */
void ljp_record_clean(const struct ljp_record_plan *plan);

/* The number of segments PATH.s1, PATH.s2 ... that are not older than
** plan->began. */
size_t ljp_record_segments(const struct ljp_record_plan *plan);

/* The session has replaced an earlier one: removes the segments that are older
** than plan->began. */
void ljp_record_drop_segments(const struct ljp_record_plan *plan);

/* Has the program replaced the file? A session does so only when it has really
** begun. */
bool ljp_record_replaced(const struct ljp_record_plan *plan);

/* next.c: ns of CLOCK_MONOTONIC, as the library's ljp_clock_ns(). */
uint64_t ljp_record_now(void);

/* A path without the present folder. */
const char *ljp_record_shown(const char *path);

/* Says what to type next, if anything was recorded, and which processes
** could have been recorded, too. */
void ljp_record_next(const struct ljp_record_plan *plan,
                     const struct ljp_told *told);

/* Reports what was recorded, and embeds symbols if requested. False: nothing
** was recorded, or an error was reported, such as one that the session met. */
bool ljp_record_outcome(struct ljp_record_plan *plan);

#endif
