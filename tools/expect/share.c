/*
** Bounds of a share, by Clopper's and Pearson's method: the lower bound is the
** share at which as many samples as observed, or more, come by chance in one
** case of 40; the upper bound is the same for as many or fewer. So they hold in
** at least 95 of 100 cases, also where there are few samples. Any thread.
*/
#include "tools/expect/figures.h"

#include <math.h>

#define SHARE_TAIL 0.025

/* The continued fraction of the incomplete beta function (Lentz's method). */
static double share_fraction(double a, double b, double x)
{
  const double tiny = 1e-300;
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  d = 1 / (fabs(d) < tiny ? tiny : d);
  double f = d;
  for (int m = 1; m < 100000; m++) {
    double change = 1;
    for (int odd = 0; odd < 2; odd++) {
      double k =
          odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
              : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
      d = 1 + k * d;
      c = 1 + k / c;
      d = 1 / (fabs(d) < tiny ? tiny : d);
      c = fabs(c) < tiny ? tiny : c;
      change = c * d;
      f *= change;
    }
    if (fabs(change - 1) < 1e-12)
      break;
  }
  return f;
}

/* The probability of a value below x in a beta distribution. */
static double share_probability(double a, double b, double x)
{
  int sign;
  if (x <= 0 || x >= 1)
    return x >= 1;
  double front = exp(lgamma_r(a + b, &sign) - lgamma_r(a, &sign) -
                     lgamma_r(b, &sign) + a * log(x) + b * log1p(-x));
  if (x < (a + 1) / (a + b + 2))
    return front * share_fraction(a, b, x) / a;
  return 1 - front * share_fraction(b, a, 1 - x) / b;
}

/* The x for which the probability is `wanted`. */
static double share_quantile(double a, double b, double wanted)
{
  double low = 0, high = 1;
  for (int i = 0; i < 60; i++) {
    double middle = (low + high) / 2;
    if (share_probability(a, b, middle) < wanted)
      low = middle;
    else
      high = middle;
  }
  return (low + high) / 2;
}

struct ljp_bounds ljp_share_bounds(double x, double n)
{
  struct ljp_bounds b = {0, 1};
  if (!(n > 0) || !(x >= 0 && x <= n))
    return b;
  if (x > 0)
    b.low = share_quantile(x, n - x + 1, SHARE_TAIL);
  if (x < n)
    b.high = share_quantile(x + 1, n - x, 1 - SHARE_TAIL);
  return b;
}
