/*
** Preload: what `ljprof record` and the library agree on, so that programs that
** look for LuaJIT in a place of their own get our library.
*/
#ifndef LJP_PRELOAD_H
#define LJP_PRELOAD_H

/* The library's file name and soname. */
#define LJP_LIBRARY_NAME "libluajit-5.1.so.2"

/* If LJPROF_RECORD begins with this, the library is the first in LD_PRELOAD,
** and only for the program itself. */
#define LJP_PRELOAD_ONCE "preload=once;"

/* The name in the ELF note of programs that have the library linked into
** them. */
#define LJP_NOTE_NAME "ljprof"

#endif
