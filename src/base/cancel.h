/*
** Keeps pthread_cancel() away while a host's thread runs our code: a thread that
** ended there would keep our locks for ever. Calls nest. What was asked meanwhile
** takes effect at the host's next cancellation point, as if our code had none.
**
** For host threads, not for signal handlers.
*/
#ifndef LJP_CANCEL_H
#define LJP_CANCEL_H

void ljp_cancel_off(void);
void ljp_cancel_on(void);

#endif
