/*
** Store names: how the files of a store are called. A store is a folder of file
** segments (RFC 1, section 9) that processes of one or more services write. Any thread; no
** memory is allocated.
**
** SERVICE-TIME-SEQUENCE-PID.ljp, such as nginx-20261128T021500Z-00000042-4711.ljp:
** TIME is when the segment began (UTC). Names of a service sort by time unless
** the machine's clock was set back. SEQUENCE is larger than that of any segment of
** the service that was there before, so it tells the order whatever the clock
** does. In place of PID, "merged" is a file that `ljprof gather` has made of
** others; its SEQUENCE is that of the newest of them.
*/
#ifndef LJP_STORE_NAME_H
#define LJP_STORE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LJP_STORE_SERVICE_BYTES 65u /* With its NUL. */
#define LJP_STORE_NAME_BYTES 160u   /* Of any name, with its NUL. */
#define LJP_STORE_MAX_SEQUENCE UINT64_C(999999999999)

struct ljp_store_name {
  char service[LJP_STORE_SERVICE_BYTES];
  uint64_t time_s; /* Since 1970. */
  uint64_t sequence;
  uint64_t pid; /* 0: merged. */
};

/* False: it is no such name, as ljp_store_name_put() would write it. */
bool ljp_store_name_parse(const char *text, struct ljp_store_name *out);

void ljp_store_name_put(char out[LJP_STORE_NAME_BYTES],
                        const struct ljp_store_name *name);

/* Can this be the service's name: 1 to 64 letters, digits and "._+@-", the first
** of them a letter or digit? */
bool ljp_store_service_valid(const char *text);

/* Makes such a name of any text: other characters become '_'. */
void ljp_store_service_make(char out[LJP_STORE_SERVICE_BYTES],
                            const char *text);

static inline void ljp_store_service_copy(char out[LJP_STORE_SERVICE_BYTES],
                                          const char *service)
{
  size_t len = strnlen(service, LJP_STORE_SERVICE_BYTES - 1);
  memcpy(out, service, len);
  out[len] = '\0';
}

/* Orders names of one service by age, the oldest first. As strcmp(). */
int ljp_store_name_compare(const struct ljp_store_name *a,
                           const struct ljp_store_name *b);

#endif
