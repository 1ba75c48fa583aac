/*
** Another: finds a LuaJIT in this process that is not ours. Ordinary code, any
** thread.
*/
#ifndef LJP_ANOTHER_H
#define LJP_ANOTHER_H

#include <stdbool.h>
#include <stddef.h>

/* The path of the first loaded file that exports LuaJIT's functions, besides the
** one with this code. False: there is none. */
bool ljp_another_luajit(char *path, size_t room);

#endif
