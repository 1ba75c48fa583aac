/*
** See examine.h.
*/
#include "tools/join/examine.h"

#include <dirent.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/join/knock.h"
#include "tools/shared/command.h"

static int examine_refuse_thread(const char *command, pid_t pid, pid_t process)
{
  struct ljp_proc_status s;
  ljp_command_error(command, "%d is a thread of process %d (%s): type '-p %d'",
                    (int)pid, (int)process,
                    ljp_proc_status(process, 0, &s) ? s.comm : "?",
                    (int)process);
  return LJP_EXIT_FAILED;
}

int ljp_examine_scope(void)
{
  int scope = -1;
  FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
  if (f && fscanf(f, "%d", &scope) != 1)
    scope = -1;
  if (f)
    fclose(f);
  return scope;
}

const char *ljp_examine_scope_text(int scope, bool root)
{
  if (scope >= 3)
    return "kernel.yama.ptrace_scope is 3, so nobody may do that until the "
           "machine is started again: start the program with "
           "LJPROF_LISTEN=/PATH, and type '-p /PATH'";
  if (scope <= 0 || root)
    return NULL;
  return scope == 1 ? "kernel.yama.ptrace_scope is 1, so only root may do "
                      "that: try sudo, " LJP_KNOCK_HINT
                    : "kernel.yama.ptrace_scope is 2, so only root may do "
                      "that: try sudo, " LJP_KNOCK_HINT;
}

static int examine_refuse_user(const char *command, pid_t pid,
                               const struct ljp_proc_status *s)
{
  const struct passwd *owner = getpwuid(s->uid);
  const char *scope =
      ljp_examine_scope_text(ljp_examine_scope(), geteuid() == 0);
  if (s->uid != geteuid() && geteuid() != 0)
    ljp_command_error(
        command,
        "process %d (%s) belongs to %s (user %u): join it as that "
        "user, or with sudo",
        (int)pid, s->comm, owner ? owner->pw_name : "another user",
        (unsigned)s->uid);
  else if (scope)
    ljp_command_error(command, "process %d (%s) may not be looked at: %s",
                      (int)pid, s->comm, scope);
  else
    ljp_command_error(
        command,
        "process %d (%s) may not be looked at: it has rights that "
        "you do not have, or is in another user namespace: %s" LJP_KNOCK_HINT,
        (int)pid, s->comm,
        geteuid() == 0 ? "join it from there, " : "try sudo, ");
  return LJP_EXIT_FAILED;
}

/* The Debian package that a file belongs to. */
static void examine_package(const char *path, char *out, size_t room)
{
  static const char folder[] = "/var/lib/dpkg/info";
  char name[512], *line = NULL;
  size_t bytes = 0;
  DIR *dir = opendir(folder);
  struct dirent *entry;
  *out = '\0';
  while (dir && !*out && (entry = readdir(dir)) != NULL) {
    size_t len = strlen(entry->d_name);
    if (len < 5 || strcmp(entry->d_name + len - 5, ".list") != 0 ||
        !strstr(entry->d_name, "luajit"))
      continue;
    snprintf(name, sizeof name, "%s/%s", folder, entry->d_name);
    FILE *f = fopen(name, "re");
    while (f && !*out && getline(&line, &bytes, f) > 0) {
      line[strcspn(line, "\n")] = '\0';
      if (strcmp(line, path) == 0)
        snprintf(out, room, "%.*s", (int)(len - 5), entry->d_name);
    }
    if (f)
      fclose(f);
  }
  if (dir)
    closedir(dir);
  free(line);
}

/* Packages list a file by another path where /lib is a link to /usr/lib. */
static void examine_package_of(const char *path, char *out, size_t room)
{
  examine_package(path, out, room);
  if (!*out && strncmp(path, "/usr/lib/", 9) == 0)
    examine_package(path + 4, out, room);
}

static int examine_refuse_luajit(const char *command, pid_t pid,
                                 const struct ljp_proc_status *s,
                                 const struct ljp_found *found)
{
  char package[256], id[64], from[400] = "";
  examine_package_of(found->object, package, sizeof package);
  if (*package)
    snprintf(from, sizeof from, ", from the package %s", package);
  snprintf(id, sizeof id, "%s%s",
           *found->build_id ? "build ID " : "no build ID", found->build_id);
  const char *name = *found->version ? found->version : "LuaJIT";
  if (!found->luajit)
    ljp_command_error(
        command,
        "process %d (%s) does not run our library: start the program "
        "by 'ljprof record', or with our library",
        (int)pid, s->comm);
  else if (found->inside)
    ljp_command_error(command,
                      "process %d (%s) uses %s, which is linked into %s (%s%s) "
                      "and is not ours; such a program cannot be joined yet: "
                      "link it with our library, or type 'ljprof record "
                      "app.lua' for a script",
                      (int)pid, s->comm, name, found->object, id, from);
  else
    ljp_command_error(command,
                      "process %d (%s) uses %s of %s (%s%s), which is not "
                      "ours, and cannot be joined yet: start the program by "
                      "'ljprof record', or with our library",
                      (int)pid, s->comm, name, found->object, id, from);
  return LJP_EXIT_FAILED;
}

static int examine_library(const char *command, pid_t pid,
                           const struct ljp_proc_status *s,
                           const struct ljp_found *found)
{
  if (found->narrow)
    ljp_command_error(command,
                      "process %d (%s) is a 32-bit program, which cannot be "
                      "profiled",
                      (int)pid, s->comm);
  else if (found->note.kind == LJP_PLACE_NONE)
    return examine_refuse_luajit(command, pid, s, found);
  else if (found->note.kind == LJP_PLACE_OLD)
    ljp_command_error(command,
                      "process %d (%s) has a library of ours that is too old "
                      "to be joined (%s): restart it with a newer one",
                      (int)pid, s->comm, found->object);
  else if (found->note.kind == LJP_PLACE_NEW)
    ljp_command_error(
        command,
        "process %d (%s): its library is newer than this ljprof, or is "
        "not ours (%s): use the ljprof that came with it",
        (int)pid, s->comm, found->object);
  else
    return -1;
  return LJP_EXIT_FAILED;
}

static int examine_state(const char *command, pid_t pid,
                         const struct ljp_proc_status *s)
{
  struct ljp_proc_status other;
  if (s->tgid != pid)
    return examine_refuse_thread(command, pid, s->tgid);
  if (s->state == 'Z' || s->state == 'X') {
    pid_t tids[2];
    bool lives = ljp_proc_threads(pid, tids, 2) > 1;
    ljp_command_error(command,
                      lives ? "process %d (%s): its first thread has ended, "
                              "so it cannot be joined by its number: wait for "
                              "its end, " LJP_KNOCK_HINT
                            : "process %d (%s) is a zombie: it has ended, and "
                              "its parent has not waited for it yet",
                      (int)pid, s->comm);
  } else if (s->tracer &&
             strncmp(ljp_proc_status(s->tracer, 0, &other) ? other.comm : "",
                     "ljprof", 6) != 0) {
    ljp_command_error(command,
                      "process %d (%s) is traced by process %d (%s): end that "
                      "first",
                      (int)pid, s->comm, (int)s->tracer,
                      *other.comm ? other.comm : "?");
  } else if (s->state == 'T') {
    ljp_command_error(command,
                      "process %d (%s) is stopped by a signal: continue it "
                      "first, with 'kill -CONT %d'",
                      (int)pid, s->comm, (int)pid);
  } else if (s->parent &&
             syscall(SYS_kcmp, pid, s->parent, KCMP_VM, 0, 0) == 0) {
    ljp_command_error(
        command,
        "process %d (%s) shares the memory of its parent %d, as a "
        "child of vfork() does: wait until it runs a program",
        (int)pid, s->comm, (int)s->parent);
  } else if (s->shadow_stack) {
    ljp_command_error(
        command,
        "process %d (%s) has a shadow stack, and cannot be "
        "joined by its number yet: start it without, " LJP_KNOCK_HINT,
        (int)pid, s->comm);
  } else {
    return -1;
  }
  return LJP_EXIT_FAILED;
}

int ljp_examine(const char *command, pid_t pid, struct ljp_proc_status *status,
                struct ljp_maps *maps, struct ljp_found *found)
{
  *maps = (struct ljp_maps){NULL, 0};
  if (!ljp_proc_status(pid, 0, status)) {
    ljp_command_error(command, "there is no process %d", (int)pid);
    return LJP_EXIT_FAILED;
  }
  if (pid == getpid()) {
    ljp_command_error(command, "process %d is this ljprof itself", (int)pid);
    return LJP_EXIT_FAILED;
  }
  int code = examine_state(command, pid, status);
  if (code >= 0)
    return code;
  int error = ljp_maps_read(maps, pid);
  if (!error && !maps->count) {
    ljp_command_error(command,
                      "process %d (%s) is a thread of the kernel, or has just "
                      "ended",
                      (int)pid, status->comm);
    return LJP_EXIT_FAILED;
  }
  if (!error)
    error = ljp_find(found, pid, maps);
  if (error == EPERM || error == EACCES)
    return examine_refuse_user(command, pid, status);
  if (error) {
    ljp_command_error(command, "process %d (%s) cannot be looked at: %s",
                      (int)pid, status->comm, strerror(error));
    return LJP_EXIT_FAILED;
  }
  if (found->note.kind == LJP_PLACE_NONE)
    ljp_find_other(found, pid, maps);
  return examine_library(command, pid, status, found);
}
