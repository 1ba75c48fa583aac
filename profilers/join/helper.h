/*
** Helper: the thread that does what a client asks for; see helper.c.
*/
#ifndef LJP_JOIN_HELPER_H
#define LJP_JOIN_HELPER_H

/* Serves the client at the other end of the socket until it leaves. Calls
** opened when the client has come, or will not come. On the helper's own
** thread, which still has the program's table of descriptors. */
void ljp_helper_run(int socket, void (*opened)(void *ctx), void *ctx);

#endif
