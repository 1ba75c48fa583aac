/*
** Which file a command will execute, and whether our library can get into it.
**
** A file that begins with "#!" leads to its interpreter. A program that
** certainly cannot be recorded is refused before it runs. If the processes that
** it starts are to be recorded, too, it runs, and the reason is only a note.
*/
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tools/record/image.h"
#include "tools/record/record.h"
#include "tools/shared/command.h"

/* As execvp() does. False: there is none, or it cannot be executed. */
static bool program_find(const char *name, char out[PATH_MAX])
{
  if (!strchr(name, '/'))
    return ljp_record_in_path(name, out);
  snprintf(out, PATH_MAX, "%s", name);
  return strlen(name) < PATH_MAX;
}

/* The next word of the line at *at; false: there is none. */
static bool program_word(char **at, char **word)
{
  *word = *at + strspn(*at, " \t");
  *at = *word + strcspn(*word, " \t");
  if (*at == *word)
    return false;
  if (**at)
    *(*at)++ = '\0';
  return true;
}

/* The file that executes a script which begins with this line. */
static bool program_interpreter(char *line, char out[PATH_MAX])
{
  char *word;
  if (!program_word(&line, &word))
    return false;
  const char *base = strrchr(word, '/');
  snprintf(out, PATH_MAX, "%s", word);
  /* "env" looks for the program that it is given. */
  if (!base || strcmp(base, "/env") != 0)
    return true;
  while (program_word(&line, &word))
    if (strcmp(word, "-u") == 0 || strcmp(word, "-C") == 0)
      program_word(&line, &word); /* it takes a word */
    else if (*word != '-' && !strchr(word, '='))
      return program_find(word, out);
  return true;
}

/* Follows scripts to the file that is executed in the end. False: none. */
static bool program_open(const char *name, char path[PATH_MAX], int *fd)
{
  enum { MAX_SCRIPTS = 5 }; /* the kernel's bound */
  if (!program_find(name, path))
    return false;
  for (int i = 0; i < MAX_SCRIPTS; i++) {
    char line[256];
    struct stat st;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0)
      return false;
    if (fstat(*fd, &st) || !S_ISREG(st.st_mode))
      break;
    ssize_t n = pread(*fd, line, sizeof line - 1, 0);
    if (n < 2 || line[0] != '#' || line[1] != '!')
      return true;
    line[n] = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (!program_interpreter(line + 2, path))
      break;
    close(*fd);
    *fd = -1;
  }
  if (*fd >= 0)
    close(*fd);
  return false;
}

/* Does the program get rights that we do not have? The loader then ignores the
** environment. A mount or this process may forbid it to get any. */
static bool program_is_secure(int fd)
{
  struct stat st;
  struct statvfs fs;
  if (fstat(fd, &st) || (!fstatvfs(fd, &fs) && (fs.f_flag & ST_NOSUID)) ||
      prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
    return false;
  if ((st.st_mode & S_ISUID && st.st_uid != getuid()) ||
      ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
       st.st_gid != getgid()))
    return true;
  return getuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

/* Says why the program cannot be recorded. With --children the processes that
** it starts may be. */
static void program_say_static(const char *path,
                               const struct ljp_record_plan *plan)
{
  bool luajit = strncmp(ljp_record_base(path), "luajit", 6) == 0;
  if (plan->children)
    ljp_command_note("record",
                     "%s has its own LuaJIT linked into it statically: only "
                     "processes that it starts can be recorded",
                     path);
  else
    ljp_command_error("record",
                      "%s has its own LuaJIT linked into it statically, which "
                      "a preloaded library cannot replace: %s%s%s",
                      path, luajit ? "type '" : "link it with our ",
                      luajit ? plan->luajit : "libluajit-5.1.a",
                      luajit ? "' in its place" : "");
}

/* Says why the program cannot be recorded, if it cannot. False: it can. */
static bool program_refuse(const struct ljp_record_plan *plan, const char *path,
                           const struct ljp_image *image,
                           const struct ljp_image *self, bool secure)
{
  __attribute__((format(printf, 2, 3))) void (*tell)(const char *name,
                                                     const char *format, ...) =
      plan->children ? ljp_command_note : ljp_command_error;
  if (secure)
    tell(
        "record",
        "%s runs with other rights than yours, so the loader ignores what "
        "would bring our library in: run 'ljprof record' as a user who already "
        "has these rights",
        path);
  else if (image->elf && !image->native)
    tell("record",
         "%s is not an x86-64 program: our library cannot be loaded into it",
         path);
  else if (image->luajit && !image->ours)
    program_say_static(path, plan);
  else if (*image->loader && !image->ours && *self->loader &&
           strcmp(ljp_record_base(image->loader),
                  ljp_record_base(self->loader)) != 0)
    tell("record",
         "%s has another C library (its loader is %s, ours %s): our library "
         "cannot be loaded into it",
         path, image->loader, self->loader);
  else
    return false;
  return true;
}

int ljp_record_find_program(struct ljp_record_plan *plan)
{
  struct ljp_image image, self;
  char path[PATH_MAX];
  int fd;
  if (!program_open(plan->program[0], path, &fd))
    return -1; /* exec says why */
  ljp_image_read(&image, fd);
  bool secure = program_is_secure(fd);
  if (fstat(fd, &plan->file))
    plan->file = (struct stat){0};
  close(fd);
  fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  ljp_image_read(&self, fd);
  if (fd >= 0)
    close(fd);
  if (program_refuse(plan, path, &image, &self, secure) && !plan->children)
    return LJP_EXIT_FAILED;
  /* Only glibc's loader can be asked; musl's looks into LD_LIBRARY_PATH
  ** first. */
  if (!plan->preload && !secure &&
      strcmp(ljp_record_base(image.loader), "ld-linux-x86-64.so.2") == 0)
    plan->preload_once = ljp_record_ask_loader(plan, path);
  if ((plan->preload || plan->preload_once) && strpbrk(plan->folder, ": ")) {
    ljp_command_error("record",
                      "our library in '%s' cannot be preloaded, because the "
                      "path has a space or a colon: move ljprof elsewhere",
                      plan->folder);
    return LJP_EXIT_FAILED;
  }
  return -1;
}
