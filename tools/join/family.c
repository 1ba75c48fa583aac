/*
** See family.h.
*/
#include "tools/join/family.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FAMILY_THREADS = 4096 };

bool ljp_family_can(void)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
  return access(path, R_OK) == 0;
}

/* When the process began, by the kernel's clock; 0: it is not there, or has
** ended. */
static uint64_t family_start(pid_t pid)
{
  char path[64], text[1024], state = 'Z';
  unsigned long long start = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *f = fopen(path, "re");
  size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
  if (f)
    fclose(f);
  text[n] = '\0';
  /* Its name may have any bytes. */
  const char *at = strrchr(text, ')');
  if (!at || sscanf(at + 1,
                    " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d "
                    "%*d %*d %*d %*d %*d %llu",
                    &state, &start) != 2)
    return 0;
  return strchr("ZX", state) ? 0 : start + 1;
}

static void family_meet(struct ljp_family *f, pid_t pid)
{
  for (size_t i = 0; i < f->count; i++)
    if (f->list[i].pid == pid) {
      f->list[i].listed = true;
      return;
    }
  if (f->count == LJP_FAMILY_MOST)
    f->full = true;
  else
    f->list[f->count++] = (struct ljp_relative){.pid = pid, .listed = true};
}

static void family_meet_children(struct ljp_family *f, pid_t pid)
{
  static pid_t tids[FAMILY_THREADS];
  unsigned count = ljp_proc_threads(pid, tids, FAMILY_THREADS);
  for (unsigned i = 0; i < count; i++) {
    char path[96];
    int child;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid,
             (int)tids[i]);
    FILE *in = fopen(path, "re");
    while (in && fscanf(in, "%d", &child) == 1)
      family_meet(f, (pid_t)child);
    if (in)
      fclose(in);
  }
}

/* Another process may have got the number. */
static void family_update(struct ljp_relative *r)
{
  char path[64];
  struct stat st;
  uint64_t start = family_start(r->pid);
  if (!r->start)
    r->start = start;
  r->there = start && r->start == start;
  snprintf(path, sizeof path, "/proc/%d/exe", (int)r->pid);
  if (!r->there)
    return;
  if (stat(path, &st))
    st.st_dev = st.st_ino = 0;
  if (r->device != st.st_dev || r->inode != st.st_ino)
    r->looks = 0;
  r->device = st.st_dev;
  r->inode = st.st_ino;
  r->looks++;
}

void ljp_family_init(struct ljp_family *f, pid_t root)
{
  *f = (struct ljp_family){.root = root, .root_start = family_start(root)};
}

void ljp_family_look(struct ljp_family *f)
{
  f->root_there = f->root_start && family_start(f->root) == f->root_start;
  f->full = false;
  for (size_t i = 0; i < f->count; i++)
    f->list[i].listed = false;
  if (f->root_there && !f->root_over)
    family_meet_children(f, f->root);
  /* Their children come behind them. */
  for (size_t i = 0; i < f->count; i++) {
    family_update(&f->list[i]);
    if (f->list[i].there)
      family_meet_children(f, f->list[i].pid);
  }
}

void ljp_family_forget(struct ljp_family *f, size_t which)
{
  f->list[which] = f->list[--f->count];
}
