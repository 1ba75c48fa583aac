/*
** Bounds of estimates; estimate.h has the method. Any thread.
*/
#include "parsers/profile/estimate.h"

#include <math.h>

/* One case in 100 on each side. This leaves room: even in a few hundred cases,
** no more than 5 of 100 are outside the bounds. */
#define LOW_TAIL 0.01
#define NORMAL 2.326347874

/* -- The gamma distribution, of scale 1 --------------------------------------- */

/* For larger shapes, Wilson's and Hilferty's formula is right to about 1e-6. */
#define LARGE_SHAPE 200.0

static double gamma_log_density(double shape, double x)
{
  int sign;
  return (shape - 1) * log(x) - x - lgamma_r(shape, &sign);
}

/* The probability of a value below x: by a power series, or for large x by a
** continued fraction for the other side (Lentz's method). */
static double gamma_probability(double shape, double x)
{
  double front = exp(gamma_log_density(shape, x)) * x;
  if (x < shape + 1) {
    double term = 1 / shape, sum = term;
    for (int n = 1; n < 10000 && term > sum * 1e-13; n++) {
      term *= x / (shape + n);
      sum += term;
    }
    return front * sum;
  }
  double b = x + 1 - shape, c = 1e300, d = 1 / b, fraction = d;
  for (int n = 1; n < 10000; n++) {
    double a = -n * (n - shape);
    b += 2;
    d = 1 / (a * d + b);
    c = b + a / c;
    fraction *= c * d;
    if (fabs(c * d - 1) < 1e-13)
      break;
  }
  return 1 - front * fraction;
}

/* The x for which the probability is `wanted`: by Newton's method within a
** shrinking interval. */
static double gamma_quantile(double shape, double wanted)
{
  double z = wanted < 0.5 ? -NORMAL : NORMAL;
  double root = 1 - 1 / (9 * shape) + z / (3 * sqrt(shape));
  double x = root > 0 ? shape * root * root * root : shape / 100;
  if (shape > LARGE_SHAPE)
    return x;
  double low = 0, high = 2 * shape + 20;
  for (int i = 0; i < 200 && high - low > 1e-9 * high; i++) {
    double off = gamma_probability(shape, x) - wanted;
    if (off > 0)
      high = x;
    else
      low = x;
    double next = x - off / exp(gamma_log_density(shape, x));
    if (!(next > low && next < high))
      next = (low + high) / 2;
    if (fabs(next - x) < 1e-9 * x)
      break;
    x = next;
  }
  return x;
}

static double gamma_bound(double mean, double variance, double wanted)
{
  if (!(mean > 0 && variance > 0))
    return 0;
  return gamma_quantile(mean * mean / variance, wanted) * variance / mean;
}

/* -- Estimates ------------------------------------------------------------------- */

struct block {
  double variance_objects, variance_bytes, grain;
};

static struct block estimate_block(uint64_t size, uint64_t weight)
{
  double s = (double)size, w = (double)weight, n = w / s;
  return (struct block){n * (n - 1), w * (w - s), s * (w - s)};
}

static void estimate_see_size(struct ljp_estimate *e, uint64_t size)
{
  if (size && (!e->smallest || size < e->smallest))
    e->smallest = size;
}

void ljp_estimate_add(struct ljp_estimate *e, uint64_t size, uint64_t weight)
{
  if (!size || weight < size)
    return;
  struct block b = estimate_block(size, weight);
  e->samples++;
  e->objects++;
  e->bytes += size;
  e->variance_objects += b.variance_objects;
  e->variance_bytes += b.variance_bytes;
  e->grain += b.grain;
  estimate_see_size(e, size);
}

void ljp_estimate_take_object(struct ljp_estimate *e, uint64_t size,
                              uint64_t weight)
{
  if (!size || weight < size)
    return;
  e->objects--;
  e->variance_objects -= estimate_block(size, weight).variance_objects;
  if (!e->objects) /* Removes what rounding has left. */
    e->variance_objects = 0;
}

void ljp_estimate_take(struct ljp_estimate *e, uint64_t size, uint64_t weight)
{
  if (!size || weight < size)
    return;
  struct block b = estimate_block(size, weight);
  e->samples--;
  e->objects--;
  e->bytes -= size;
  e->variance_objects -= b.variance_objects;
  e->variance_bytes -= b.variance_bytes;
  e->grain -= b.grain;
  if (!e->samples) /* Removes what rounding has left. */
    *e = (struct ljp_estimate){.smallest = e->smallest};
}

void ljp_estimate_sum(struct ljp_estimate *to, const struct ljp_estimate *from)
{
  to->samples += from->samples;
  to->objects += from->objects;
  to->bytes += from->bytes;
  to->variance_objects += from->variance_objects;
  to->variance_bytes += from->variance_bytes;
  to->grain += from->grain;
  estimate_see_size(to, from->smallest);
}

/* grain: the typical size of unsampled blocks. more: what one more sample would
** stand for; own: how much of that is the sample itself. */
static struct ljp_bounds estimate_bounds(double estimate, double certain,
                                         double variance, double grain,
                                         double more, double own)
{
  double excess = estimate > certain ? estimate - certain : 0;
  double low = gamma_bound(excess, variance, LOW_TAIL) - grain;
  double high = gamma_bound(excess + more - own, variance + more * (more - own),
                            1 - LOW_TAIL) +
                grain;
  struct ljp_bounds b = {certain + (low > 0 ? low : 0), certain + high};
  if (b.low > estimate)
    b.low = estimate;
  if (b.high < estimate)
    b.high = estimate;
  return b;
}

struct ljp_bounds ljp_estimate_objects(const struct ljp_estimate *e,
                                       double objects, double interval)
{
  double certain = (double)e->objects;
  uint64_t size = e->smallest;
  if (!size || size > LJP_ESTIMATE_SMALLEST)
    size = LJP_ESTIMATE_SMALLEST;
  if (!(interval > 0))
    return (struct ljp_bounds){objects, objects};
  return estimate_bounds(objects, certain < objects ? certain : objects,
                         e->variance_objects, 1,
                         -1 / expm1(-(double)size / interval), 1);
}

struct ljp_bounds ljp_estimate_bytes(const struct ljp_estimate *e, double bytes,
                                     double interval)
{
  double excess = bytes - (double)e->bytes;
  if (!(interval > 0))
    return (struct ljp_bounds){bytes, bytes};
  return estimate_bounds(bytes, excess > 0 ? (double)e->bytes : bytes,
                         e->variance_bytes, excess > 0 ? e->grain / excess : 0,
                         interval, 0);
}
