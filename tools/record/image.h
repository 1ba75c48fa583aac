/*
** Image: what can be known of an executable file before it runs. The file may
** be anything.
*/
#ifndef LJP_TOOLS_IMAGE_H
#define LJP_TOOLS_IMAGE_H

#include <stdbool.h>

enum { LJP_IMAGE_LOADER_MAX = 256 };

struct ljp_image {
  bool elf;
  bool native; /* for x86-64; the rest is known only then */
  bool ours;   /* has our library linked into it */
  bool luajit; /* has a LuaJIT linked into it, ours or another */
  char loader[LJP_IMAGE_LOADER_MAX]; /* the path; "": it is static */
};

void ljp_image_read(struct ljp_image *image, int fd);

/* Is the text somewhere in the file? */
bool ljp_image_has_text(const char *path, const char *text);

/* Does the file export the functions of a Lua that is no LuaJIT? */
bool ljp_image_has_lua(const char *path);

#endif
