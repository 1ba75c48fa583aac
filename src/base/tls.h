/*
** How the thread-local variables of the signal handler are addressed.
**
** glibc may allocate when __tls_get_addr() is first called in a thread, so the
** handler's variables have a fixed distance from the thread's pointer; glibc
** keeps room for such variables of libraries that dlopen() loads. musl keeps no
** room and would refuse to load the library. But musl's dlopen() makes the
** variables for all threads, and its __tls_get_addr() only reads two words, so
** a handler may call it.
*/
#ifndef LJP_TLS_H
#define LJP_TLS_H

#include <features.h>

#ifdef __GLIBC__
#define LJP_TLS_SIGSAFE __attribute__((tls_model("initial-exec")))
#else
#define LJP_TLS_SIGSAFE __attribute__((tls_model("local-dynamic")))
#endif

#endif
