/*
** The shared session: one that its owner offers to other profilers. Today the
** CPU profiler owns it, and the memory profiler takes part in a combined
** session. Neither knows the other; both know this.
**
** Once it has joined, the participant stays and says itself whether it records.
** Its functions take the participant's own lock, inside or outside the owner's
** lock as described below.
*/
#ifndef LJP_SHARED_H
#define LJP_SHARED_H

#include <stdbool.h>
#include <stdint.h>

struct ljp_session;

struct ljp_participant {
  /* In a fork's child, after the owner has made its own lock new. */
  void (*forked)(bool recording);
  /* Does it record into the shared session? Outside the owner's lock. */
  bool (*records)(void);
  /* The session's time is over. Outside the owner's lock. */
  void (*expire)(void);
};

/* The participant's part. */
void ljp_shared_join(const struct ljp_participant *participant);
/* The session on offer, or NULL. It stays until the owner stops it. */
struct ljp_session *ljp_shared_session(void);

/* The id of the VM with this number in the session on offer, which it gets now if
** it has none; 0: it cannot get one. Takes the owner's lock. */
uint32_t ljp_shared_vm_id(uint32_t number);

/* The owner's part. session NULL withdraws the offer. vm_id: as above. */
void ljp_shared_offer(struct ljp_session *session,
                      uint32_t (*vm_id)(uint32_t number));
void ljp_shared_forked(bool recording);
void ljp_shared_expire(void);
bool ljp_shared_in_use(void);

#endif
