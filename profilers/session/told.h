/*
** Told: what this process tells the `ljprof record` that started the program:
** that the library was loaded, why a session was refused, another LuaJIT, and children. `ljprof record`
** keeps a pipe open for this. The process finds the pipe by the process number
** and descriptor of `ljprof record`; the program inherits no descriptor.
** Ordinary code, any thread.
*/
#ifndef LJP_TOLD_H
#define LJP_TOLD_H

/* what: a letter; text: behind it, or NULL. Does nothing without a record. */
void ljp_told(char what, const char *text);

/* In a process that `ljprof record` asks to record: tells it, and stderr, why
** there is no session. Without a request does nothing. */
void ljp_told_refused(const char *text);

#endif
