/*
** Preload: what `ljprof record` and the library agree on, so that programs that
** look for LuaJIT in a place of their own get our library.
*/
#ifndef LJP_PRELOAD_H
#define LJP_PRELOAD_H

/* The library's file name and soname. */
#define LJP_LIBRARY_NAME "libluajit-5.1.so.2"

/*
** If LJPROF_RECORD begins with "preload=WORD:DEVICE:INODE;", the library is the
** first in LD_PRELOAD for one program only, whose file has this device and
** inode. Programs on the way to it, such as "env", leave the list as it is. The
** words have the same length, since the library changes one in place.
*/
#define LJP_PRELOAD_BEGIN "preload="
/* The program takes the library out of the list when it begins. */
#define LJP_PRELOAD_ONCE "once:"
/* The program leaves it there, for when it executes itself again; what else it
** executes takes the library out. */
#define LJP_PRELOAD_SELF "self:"
/* What the library makes of "self:" when the program begins. */
#define LJP_PRELOAD_KEPT "kept:"
#define LJP_PRELOAD_FILE "%llu:%llu;"

/* The name in the ELF note of programs that have the library linked into
** them. */
#define LJP_NOTE_NAME "ljprof"

#endif
