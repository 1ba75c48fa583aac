/*
** Target: the folder and the name that a path means, once all symbolic links are
** followed. The folder is held open, so that what is done by name afterwards
** (create, compare, rename) happens there, whatever is put in the path's way
** meanwhile. Ordinary code of any thread.
**
** In a sticky folder that everybody may write to (/tmp), a link counts only if
** it is ours or the folder's owner's: anybody could have put it there to have
** us replace a file elsewhere. This is the kernel's rule fs.protected_symlinks,
** which the kernel cannot apply to names that a program resolves itself.
*/
#ifndef LJP_TARGET_H
#define LJP_TARGET_H

#include <stdbool.h>
#include <sys/stat.h>

struct ljp_target {
  int dir;    /* O_PATH; the caller closes it. */
  char *path; /* Absolute and without links; the caller frees it. */
  char *name; /* Within path. */
  bool there;
  struct stat st; /* If there: of the entry itself. */
  /* The entry is a link that only the kernel can follow, such as
  ** /proc/self/fd/1 to a pipe. */
  bool kernel_link;
};

/* Returns 0 or an errno: EACCES also for a link that does not count. The last
** name of the path need not exist. */
int ljp_target_find(struct ljp_target *found, const char *path);

/* Is an entry of this folder ours or its owner's, or can only those put one
** there whom the folder's owner has let in? */
bool ljp_target_trusts(int dir, const struct stat *entry);

#endif
