/* Fuzz target: any bytes as a stream, exported in every format. JSON formats
** must be valid JSON, and the collapsed lines must add up to the rows. */
#include "test/support/fuzz_stream.h"
#include "test/support/json.h"
#include "tools/export/ljm.h"

/* A few bytes of input may stand for many frames. */
enum { TEXT_MAX = 1 << 22, OUT_MAX = 1 << 26 };

static char text[TEXT_MAX + 1];
static size_t len;
static struct ljp_reader reader;
static struct ljp_print out;

static void keep(void *ctx, const char *data, size_t n)
{
  (void)ctx;
  if (len + n <= TEXT_MAX)
    memcpy(text + len, data, n);
  len += n;
}

static void run(struct ljp_export *e,
                enum ljp_status (*format)(struct ljp_export *e))
{
  len = 0;
  ljp_print_begin(&out, -1);
  out.sink = keep;
  e->out = &out;
  if (format(e))
    abort();
  ljp_print_end(&out);
  if (len <= TEXT_MAX)
    text[len] = '\0';
}

/* Both sums wrap in the same way. */
static void check_collapsed(struct ljp_export *e)
{
  uint64_t wanted = 0, sum = 0;
  ljp_export_start(e);
  for (uint32_t row = 0; row < e->p->row_count; row++)
    wanted += ljp_export_value(e, row, e->value);
  run(e, ljp_export_collapsed);
  if (len > TEXT_MAX)
    return;
  for (char *line = text, *end; *line; line = end + 1) {
    end = strchr(line, '\n');
    if (!end)
      abort();
    *end = '\0';
    const char *space = strrchr(line, ' ');
    if (!space || space == line)
      abort();
    sum += strtoull(space, NULL, 10);
  }
  if (sum != wanted)
    abort();
}

static void check_json(struct ljp_export *e,
                       enum ljp_status (*format)(struct ljp_export *e))
{
  run(e, format);
  if (len && len <= TEXT_MAX && !json_valid(text, len))
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct ljp_ljm *ljm = ljp_ljm_new();
  struct ljp_profile_options options = {.no_symbols = true,
                                        .points = true,
                                        .observe = ljp_ljm_take,
                                        .observe_ctx = ljm};
  struct ljp_profile *p = ljm ? ljp_profile_new(&options) : NULL;
  if (!p) {
    ljp_ljm_free(ljm);
    return 0;
  }
  if (!ljp_reader_memory(&reader, data, size)) {
    if (!ljp_profile_add(p, &reader) && !ljp_profile_finish(p))
      for (unsigned v = 0; v < LJP_VALUE_COUNT; v += 3) {
        struct ljp_export e = {.p = p,
                               .ljm = ljm,
                               .value = (enum ljp_value_id)v,
                               .asked = v != 0,
                               .how = LJP_NAME_SUFFIX};
        memset(e.has, v == 0, sizeof e.has);
        check_collapsed(&e);
        check_json(&e, ljp_export_speedscope);
        check_json(&e, ljp_export_chrome);
        run(&e, ljp_export_callgrind);
        run(&e, ljp_export_pprof);
        if (p->totals.samples < 10000) /* perf's format has a block a sample. */
          run(&e, ljp_export_perf);
        if (v == LJP_VALUE_SAMPLES) {
          run(&e, ljp_export_ljp);
          run(&e, ljp_export_ljm);
        }
      }
    ljp_reader_fini(&reader);
  }
  ljp_profile_free(p);
  ljp_ljm_free(ljm);
  return 0;
}
