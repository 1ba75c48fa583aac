/*
** Told: what this process tells the `ljprof record` that began it: that it has
** loaded the library, and why a session was refused. record keeps a pipe for it,
** which is found by the record's process number and descriptor; the program
** inherits no descriptor. Ordinary code, any thread.
*/
#ifndef LJP_TOLD_H
#define LJP_TOLD_H

/* what: a letter; text: behind it, or NULL. Does nothing without a record. */
void ljp_told(char what, const char *text);

#endif
