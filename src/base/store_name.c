/*
** See store_name.h.
*/
#include "src/base/store_name.h"

#include <string.h>

enum {
  DAY_S = 86400,
  SEQUENCE_DIGITS = 8,
  TIME_BYTES = sizeof "20261128T021500Z" - 1
};
#define MAX_TIME_S UINT64_C(253402300799) /* The end of the year 9999. */

static const char name_suffix[] = ".ljp", name_merged[] = "merged";
static const char name_digits[] = "0123456789";

/* -- Time ------------------------------------------------------------------- */

static char *name_put_number(char *out, uint64_t n, unsigned digits)
{
  for (unsigned i = digits; i--; n /= 10)
    out[i] = (char)('0' + n % 10);
  return out + digits;
}

/* At least so many digits. By hand, since snprintf() takes 2.5 KiB of stack, and
** the program's own stack may be small. */
static char *name_put_whole(char *out, uint64_t n, unsigned digits)
{
  for (uint64_t rest = n / 10, one = 1; rest; rest /= 10)
    if (++one > digits)
      digits = (unsigned)one;
  return name_put_number(out, n, digits);
}

/* By hand, since gmtime_r() takes a lock, which a child of fork() might never
** get. Years begin in March here, so that the day of a leap year comes last. */
static void name_put_time(char out[TIME_BYTES + 1], uint64_t time_s)
{
  if (time_s > MAX_TIME_S)
    time_s = MAX_TIME_S;
  uint64_t days = time_s / DAY_S + 719468, s = time_s % DAY_S;
  uint64_t era = days / 146097, day = days % 146097;
  uint64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
  day -= 365 * year + year / 4 - year / 100;
  uint64_t month = (5 * day + 2) / 153;
  day -= (153 * month + 2) / 5;
  month = month < 10 ? month + 3 : month - 9;
  out = name_put_number(out, year + era * 400 + (month <= 2), 4);
  out = name_put_number(name_put_number(out, month, 2), day + 1, 2);
  *out++ = 'T';
  out = name_put_number(name_put_number(out, s / 3600, 2), s / 60 % 60, 2);
  out = name_put_number(out, s % 60, 2);
  memcpy(out, "Z", 2);
}

static uint64_t name_number(const char *text, size_t digits)
{
  uint64_t n = 0;
  for (size_t i = 0; i < digits; i++)
    n = n * 10 + (uint64_t)(text[i] - '0');
  return n;
}

static bool name_parse_time(const char *text, uint64_t *time_s)
{
  if (strspn(text, name_digits) != 8 || text[8] != 'T' ||
      strspn(text + 9, name_digits) != 6 || text[15] != 'Z')
    return false;
  uint64_t year = name_number(text, 4), month = name_number(text + 4, 2);
  uint64_t day = name_number(text + 6, 2), hour = name_number(text + 9, 2);
  uint64_t minute = name_number(text + 11, 2);
  uint64_t second = name_number(text + 13, 2);
  if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 ||
      hour > 23 || minute > 59 || second > 60)
    return false;
  uint64_t from_march = month > 2 ? month - 3 : month + 9;
  year -= month <= 2;
  uint64_t days = year * 365 + year / 4 - year / 100 + year / 400 +
                  (153 * from_march + 2) / 5 + day - 1 - 719468;
  *time_s = days * DAY_S + hour * 3600 + minute * 60 + second;
  return true;
}

/* -- Names ------------------------------------------------------------------ */

static bool name_is_plain(char c)
{
  return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static bool name_may_have(char c)
{
  return name_is_plain(c) || (c && strchr("._+@-", c));
}

bool ljp_store_service_valid(const char *text)
{
  size_t len = 0;
  while (name_may_have(text[len]))
    len++;
  return name_is_plain(*text) && !text[len] && len < LJP_STORE_SERVICE_BYTES;
}

void ljp_store_service_make(char out[LJP_STORE_SERVICE_BYTES], const char *text)
{
  size_t at = 0;
  while (*text && !name_is_plain(*text))
    text++;
  for (; *text && at + 1 < LJP_STORE_SERVICE_BYTES; text++)
    out[at++] = name_may_have(*text) ? *text : '_';
  if (!at)
    out[at++] = 'x';
  out[at] = '\0';
}

/* The part before *end that follows a '-'. *end becomes that '-'. */
static const char *name_part(const char *text, const char **end)
{
  const char *at = *end;
  while (at > text && at[-1] != '-')
    at--;
  if (at <= text + 1)
    return NULL;
  *end = at - 1;
  return at;
}

/* A number of digits only, up to `to`. */
static bool name_parse_number(const char *text, const char *to, uint64_t *n)
{
  size_t len = (size_t)(to - text);
  if (!len || len > 12 || strspn(text, name_digits) != len)
    return false;
  *n = name_number(text, len);
  return true;
}

bool ljp_store_name_parse(const char *text, struct ljp_store_name *out)
{
  size_t len = strlen(text), suffix = sizeof name_suffix - 1;
  if (len >= LJP_STORE_NAME_BYTES || len <= suffix ||
      strcmp(text + len - suffix, name_suffix) != 0)
    return false;
  const char *end = text + len - suffix, *to = end;
  const char *pid = name_part(text, &end);
  if (!pid)
    return false;
  bool merged = (size_t)(to - pid) == sizeof name_merged - 1 &&
                memcmp(pid, name_merged, sizeof name_merged - 1) == 0;
  out->pid = 0;
  if (!merged && (!name_parse_number(pid, to, &out->pid) || !out->pid))
    return false;
  to = end;
  const char *sequence = name_part(text, &end);
  if (!sequence || !name_parse_number(sequence, to, &out->sequence))
    return false;
  to = end;
  const char *time = name_part(text, &end);
  size_t service = (size_t)(end - text);
  if (!time || to - time != TIME_BYTES ||
      !name_parse_time(time, &out->time_s) ||
      service >= LJP_STORE_SERVICE_BYTES)
    return false;
  memcpy(out->service, text, service);
  out->service[service] = '\0';
  char same[LJP_STORE_NAME_BYTES];
  ljp_store_name_put(same, out);
  return out->sequence && strcmp(same, text) == 0 &&
         ljp_store_service_valid(out->service);
}

void ljp_store_name_put(char out[LJP_STORE_NAME_BYTES],
                        const struct ljp_store_name *name)
{
  out = stpncpy(out, name->service, LJP_STORE_SERVICE_BYTES - 1);
  *out++ = '-';
  name_put_time(out, name->time_s);
  out += TIME_BYTES;
  *out++ = '-';
  out = name_put_whole(out, name->sequence, SEQUENCE_DIGITS);
  *out++ = '-';
  out =
      name->pid ? name_put_whole(out, name->pid, 1) : stpcpy(out, name_merged);
  memcpy(out, name_suffix, sizeof name_suffix);
}

int ljp_store_name_compare(const struct ljp_store_name *a,
                           const struct ljp_store_name *b)
{
  if (a->sequence != b->sequence)
    return a->sequence < b->sequence ? -1 : 1;
  if (a->time_s != b->time_s)
    return a->time_s < b->time_s ? -1 : 1;
  return a->pid < b->pid ? -1 : a->pid > b->pid;
}
