/*
** Door: the thread that gives a client its end of a socket; see door.c.
*/
#ifndef LJP_JOIN_DOOR_H
#define LJP_JOIN_DOOR_H

/* Makes the thread. By the entry only. Returns 0 or an errno. */
int ljp_door_start(void);

#endif
