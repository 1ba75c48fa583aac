/*
** Binding of the library's calls to other libraries.
**
** The loader binds such a call when it is made first, and takes more than 3 KiB
** of the caller's stack for that: too much for a signal handler or an allocator
** that may run on a coroutine's stack. Binding all calls at load would cost some
** 600 instructions for each name, in every program. So a session binds them when
** it starts.
*/
#ifndef LJP_BIND_H
#define LJP_BIND_H

/* Binds each call of the object that this code lies in (the library, or the
** program that it is linked into) which the loader has not bound yet. Any
** thread; needs some 4 KiB of stack. Ordinary code. */
void ljp_bind_calls(void);

#endif
