/*
** Binding of the library's calls to other libraries.
**
** The loader binds such a call when the call is first made, which takes more
** than 3 KiB of the caller's stack: too much for a signal handler or an
** allocator that may run on a coroutine's stack. Binding all calls at load
** would cost every program some 600 instructions for each name. So the first
** session binds them when it starts.
*/
#ifndef LJP_BIND_H
#define LJP_BIND_H

/* Binds each call that the loader has not bound yet, of the object that holds
** this code (the library, or the program that it is linked into). Any thread;
** needs some 4 KiB of stack. Ordinary code. */
void ljp_bind_calls(void);

#endif
