/*
** Newfile: a file that appears under its name only when it is fit to be seen,
** and then replaces the file that was there. Ordinary code of any thread.
** Invariants: the old file stays whole until ljp_newfile_show(), and the new
** one takes over its mode and owner. Both names are in the folder that the path
** led to at first (target.h), whatever becomes of the path meanwhile.
**
** Until then the file has no name at all (O_TMPFILE): nothing is left of it,
** whatever ends the process, even execve() or kill -9. There are two
** exceptions. To replace an old file in one step, the new one has a temporary
** name for the time of two system calls. On file systems without nameless files
** (NFS, FAT, old overlayfs), or if links are forbidden, the new file has the
** temporary name from the beginning. The temporary name is NAME.ljp-PID-n.
*/
#ifndef LJP_NEWFILE_H
#define LJP_NEWFILE_H

#include "src/base/open_file.h"
#include "src/base/target.h"

struct ljp_newfile {
  struct ljp_open_file folder; /* fd -1: there is no new file. */
  char *name;                  /* The one it is to get. */
  char *temporary;             /* The one it has; NULL: none. */
};

/* There is no new file. */
static inline void ljp_newfile_init(struct ljp_newfile *new)
{
  *new = (struct ljp_newfile){.folder.fd = -1};
}

static inline bool ljp_newfile_hidden(const struct ljp_newfile *new)
{
  return new->folder.fd >= 0;
}

/* Creates the file and sets *fd, which the caller closes. Takes over found->dir,
** and closes it on failure. Returns 0 or an errno. */
int ljp_newfile_open(struct ljp_newfile *new, const struct ljp_target *found,
                     int *fd);

/* Gives the file the temporary name already, so that ljp_newfile_show() does not
** make a copy. Returns 0 or an errno, as where links are forbidden. */
int ljp_newfile_link(struct ljp_newfile *new, int fd);

/* Gives the file its name. replace: instead of an old one; else EEXIST is an
** error. old: NULL, or gets a descriptor of the replaced file (O_PATH), -1 if
** there is none. May open a copy by the same number fd. Returns 0 or an errno;
** then the file is as hidden as before. */
int ljp_newfile_show(struct ljp_newfile *new, int fd, bool replace, int *old);

/* Drops the file, unless it was shown. */
void ljp_newfile_discard(struct ljp_newfile *new);

/* Frees the memory and closes the folder, and leaves the file as it is. */
void ljp_newfile_forget(struct ljp_newfile *new);

#endif
