/*
** Samples against the truth: runs sites.lua in a new VM, once with every event
** recorded, then RUNS times sampled. For each site and each measure of a report
** (allocated, live, leaked, since a mark, at the peak, temporary; objects and
** bytes) the mean of the estimates must equal the truth: within 2 % where RUNS
** runs are enough to tell, elsewhere as closely as chance allows. The bounds
** that a report prints must contain the truth in 95 of 100 runs.
**
** estimates SCRIPT FILE RUNS [INTERVAL]
*/
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"

#include "parsers/profile/frame_name.h"
#include "parsers/profile/profile.h"

enum { SITES = 32, MEASURES = 6, INTERVAL = 8192 };

static const char *const measures[MEASURES] = {
    "allocated", "live", "peak", "temporary", "leaked", "since mark"};

struct value {
  double objects, bytes;
  struct ljp_estimate estimate;
};

struct site {
  char name[64];
  struct value of[MEASURES];
};

struct run {
  struct site sites[SITES];
  unsigned count;
  double interval;
};

/* What all runs together say about one measure of a site. */
struct judged {
  double sum[2];
  struct ljp_estimate all; /* As if all runs were one. */
  int shown, held[2];
};

static void die(const char *what, const char *why)
{
  fprintf(stderr, "estimates: %s: %s\n", what, why);
  exit(1);
}

static void record(const char *script, const char *path, double interval)
{
  lua_State *L = luaL_newstate();
  if (!L)
    die(script, "no VM");
  luaL_openlibs(L);
  if (luaL_dostring(L, "jit.off()") || luaL_loadfile(L, script))
    die(script, lua_tostring(L, -1));
  lua_pushstring(L, path);
  lua_pushnumber(L, interval);
  if (lua_pcall(L, 2, 0, 0))
    die(script, lua_tostring(L, -1));
  lua_close(L);
}

/* The site to which a stack belongs; NULL: none. */
static struct site *site_of(struct run *run, const struct ljp_profile *p,
                            uint32_t node)
{
  char name[64];
  for (; node; node = p->nodes[node].parent) {
    ljp_frame_function_text(p, p->nodes[node].frame, name, sizeof name);
    if (strncmp(name, "site_", 5) == 0)
      break;
  }
  if (!node)
    return NULL;
  name[strcspn(name, " ")] = '\0';
  for (unsigned i = 0; i < run->count; i++)
    if (strcmp(run->sites[i].name, name) == 0)
      return &run->sites[i];
  if (run->count == SITES)
    die(name, "too many sites");
  struct site *site = &run->sites[run->count++];
  memset(site, 0, sizeof *site);
  snprintf(site->name, sizeof site->name, "%s", name);
  return site;
}

static void add(struct value *to, uint64_t objects, uint64_t bytes,
                const struct ljp_estimate *estimate)
{
  to->objects += (double)objects / LJP_OBJECT;
  to->bytes += (double)bytes;
  ljp_estimate_sum(&to->estimate, estimate);
}

static void load(struct run *run, const char *path)
{
  static const struct ljp_profile_estimates exact;
  const struct ljp_profile_options options = {.since = "half",
                                              .no_symbols = true};
  char error[LJP_READER_ERROR_BYTES + 64];
  struct ljp_profile *p;
  if (ljp_profile_load(path, &options, &p, error))
    die(path, error);
  if (p->totals.lost_all || p->totals.gaps || p->totals.too_many)
    die(path, "something was lost");
  run->count = 0;
  run->interval = (double)p->sample_bytes;
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    struct site *site = row->memory ? site_of(run, p, row->node) : NULL;
    const struct ljp_profile_memory *m = &p->memory[row->memory];
    const struct ljp_profile_estimates *e =
        p->estimates ? &p->estimates[row->memory] : &exact;
    if (!site)
      continue;
    add(&site->of[0], m->alloc_objects, m->alloc_bytes, &e->alloc);
    add(&site->of[1], m->live_objects, m->live_bytes, &e->live);
    add(&site->of[2], m->peak_objects, m->peak_bytes, &e->peak);
    add(&site->of[3], m->temporary_objects, m->temporary_bytes, &e->temporary);
    add(&site->of[4], m->old_objects, m->old_bytes, &e->old);
    add(&site->of[5], m->recent_objects, m->recent_bytes, &e->recent);
  }
  ljp_profile_free(p);
}

static bool holds(struct ljp_bounds bounds, double truth)
{
  return floor(bounds.low) <= truth && truth <= ceil(bounds.high);
}

static void compare(struct judged *j, const struct value *truth,
                    const struct value *got, double interval)
{
  double have[2] = {got->objects, got->bytes};
  ljp_estimate_sum(&j->all, &got->estimate);
  for (int k = 0; k < 2; k++)
    j->sum[k] += have[k];
  j->held[1] += holds(ljp_estimate_bytes(&got->estimate, got->bytes, interval),
                      truth->bytes);
  if (!got->estimate.samples)
    return; /* A report prints no objects for it. */
  j->shown++;
  j->held[0] +=
      holds(ljp_estimate_objects(&got->estimate, got->objects, interval),
            truth->objects);
}

/* The variance of one run's estimate, for blocks of one size: each block is
** hit, and then stands for 1 / chance blocks, or is not hit. */
static double true_variance(const struct value *v, int bytes, double interval)
{
  double size = v->bytes / v->objects;
  double chance = -expm1(-size / interval);
  return v->objects * (1 - chance) / chance * (bytes ? size * size : 1);
}

/* What the estimate of a sum with this variance exceeds once in 300,000 times, by
** Bernstein's inequality. It holds where single blocks matter, too: large ones
** that are missed once in a while. */
static double estimate_limit(const struct value *v, bool bytes, double interval,
                             double variance)
{
  const double unlikely = 12.6; /* log(300,000) */
  double size = v->bytes / v->objects;
  double chance = -expm1(-size / interval);
  double most = fmax(1, (1 - chance) / chance) * (bytes ? size : 1);
  return sqrt(2 * unlikely * variance) + unlikely * most / 3;
}

/* Prints one line. False: the estimates are wrong. */
static bool judge(const struct site *site, int measure, const struct judged *j,
                  int runs, double interval)
{
  static const char *const what[2] = {"objects", "bytes"};
  const struct value *v = &site->of[measure];
  double truth[2] = {v->objects, v->bytes};
  bool good = true;
  if (v->bytes == 0) /* All estimates must be 0, too. */
    return j->sum[0] == 0 && j->sum[1] == 0;
  printf("%-20s %-10s", site->name + 5, measures[measure]);
  for (int k = 0; k < 2; k++) {
    double off = j->sum[k] / runs / truth[k] - 1;
    int of = k ? runs : j->shown;
    /* Chance exceeds these limits once in 300,000 times: that of the estimate's
    ** error, and that of the number of bounds that hold, which should be 95 of
    ** 100. The variance is the true one or, if larger, the sampled one: a rare
    ** block that was hit too seldom gives too small a variance. At sites of
    ** mixed sizes this is so for the smallest blocks, and there is no one true
    ** size. So the limit there is twice the bounds of all runs. */
    struct ljp_bounds b =
        k ? ljp_estimate_bytes(&j->all, j->sum[k], interval)
          : ljp_estimate_objects(&j->all, j->sum[k], interval);
    double error =
        strstr(site->name, "mixed")
            ? (off < 0 ? b.high - j->sum[k] : j->sum[k] - b.low) * 2
            : estimate_limit(
                  v, k, interval,
                  fmax(k ? j->all.variance_bytes : j->all.variance_objects,
                       runs * true_variance(v, k, interval)));
    error /= runs * truth[k];
    bool right =
        fabs(off) <= error + 1e-4 && (error > 0.02 || fabs(off) < 0.02);
    bool bound = j->held[k] + 4.5 * sqrt(0.05 * 0.95 * of) + 1e-9 >= 0.95 * of;
    printf(" %12.0f %s %+6.2f %% (by chance %.2f %%) in bounds %d of %d%s",
           truth[k], what[k], 100 * off, 100 * error, j->held[k], of,
           right && bound ? "" : " WRONG");
    good = good && right && bound;
  }
  printf("\n");
  return good;
}

int main(int argc, char **argv)
{
  static struct run truth, run;
  static struct judged all[SITES][MEASURES];
  bool good = true;
  long held = 0, of = 0;
  if (argc < 4)
    die("usage", "estimates SCRIPT FILE RUNS [INTERVAL]");
  const char *script = argv[1], *path = argv[2];
  int runs = atoi(argv[3]);
  double interval = argc > 4 ? strtod(argv[4], NULL) : INTERVAL;
  if (runs < 1 || !(interval >= 1))
    die(argv[3], "wants a number of runs, and of bytes");
  record(script, path, 0);
  load(&truth, path);
  if (truth.interval != 0 || truth.count < 10)
    die(path, "the truth is not exact");
  for (int n = 0; n < runs; n++) {
    record(script, path, interval);
    load(&run, path);
    if (run.interval != interval)
      die(path, "another interval");
    for (unsigned i = 0; i < truth.count; i++) {
      static const struct site none;
      const struct site *got = &none;
      for (unsigned k = 0; k < run.count; k++)
        if (strcmp(run.sites[k].name, truth.sites[i].name) == 0)
          got = &run.sites[k];
      for (int m = 0; m < MEASURES; m++)
        compare(&all[i][m], &truth.sites[i].of[m], &got->of[m], interval);
    }
  }
  for (unsigned i = 0; i < truth.count; i++)
    for (int m = 0; m < MEASURES; m++) {
      good = judge(&truth.sites[i], m, &all[i][m], runs, interval) && good;
      if (truth.sites[i].of[m].bytes == 0)
        continue;
      held += all[i][m].held[0] + all[i][m].held[1];
      of += all[i][m].shown + runs;
    }
  double share = 100.0 * (double)held / (double)of;
  printf("%d runs: %.2f %% of %ld bounds hold\n", runs, share, of);
  return good && share >= 95 ? 0 : 1;
}
