/*
** How far a mistyped word is from a known one, for messages that suggest the
** nearest. Plain helper. Any thread.
*/
#ifndef LJP_NEAREST_H
#define LJP_NEAREST_H

#include <limits.h>
#include <string.h>

enum { LJP_NEAREST_MAX_BYTES = 32 };

/* The number of edits (insert, remove, replace) that turn a word into a known
** one. UINT_MAX: the known one is longer than LJP_NEAREST_MAX_BYTES. */
static inline unsigned ljp_nearest_distance(const char *word, const char *known)
{
  unsigned row[LJP_NEAREST_MAX_BYTES + 1];
  size_t n = strlen(known);
  if (n > LJP_NEAREST_MAX_BYTES)
    return UINT_MAX;
  for (unsigned j = 0; j <= n; j++)
    row[j] = j;
  for (unsigned i = 1; *word; word++, i++) {
    unsigned diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= n; j++) {
      unsigned best = diagonal + (*word != known[j - 1]);
      diagonal = row[j];
      if (row[j] + 1 < best)
        best = row[j] + 1;
      if (row[j - 1] + 1 < best)
        best = row[j - 1] + 1;
      row[j] = best;
    }
  }
  return row[n];
}

/* The distance up to which a mistyped word is taken for a known one. */
static inline unsigned ljp_nearest_limit(const char *word)
{
  return 1 + (unsigned)strlen(word) / 4;
}

#endif
