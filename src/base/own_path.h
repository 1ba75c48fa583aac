/*
** Decides which file a process writes to if the name that it was given is
** taken. A profile of the same recording is never replaced, neither by a child
** with the process number of an earlier one nor by the next program that a
** process executes.
*/
#ifndef LJP_OWN_PATH_H
#define LJP_OWN_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How `ljprof record` tells the library which file it may replace: a format
** and its arguments, from a struct stat. */
#define LJP_FILE_ID "%llu:%llu"
#define LJP_FILE_ID_OF(st)                                                     \
  (unsigned long long)(st)->st_dev, (unsigned long long)(st)->st_ino

/* Is there a file segment PATH.s1, PATH.s2 ... that was written since then
** (nanoseconds since 1970)? */
bool ljp_path_has_segments(const char *path, uint64_t since_ns);

/* Writes the first of PATH.PID, PATH.PID-2, PATH.PID-3 ... that does not exist to
** out. executed: begins with PATH.PID-2. segments: the file segments of a
** profile count, too, since its first one may have been removed. False: there is
** no room. */
bool ljp_path_numbered(char *out, size_t room, const char *path, long pid,
                       bool executed, bool segments);

#endif
