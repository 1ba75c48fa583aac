/* Fuzz target: any bytes as a stream, as a page, a drawing and a diff with
** itself. The page's data must be JSON without "<", its rows must add up to the
** profile's, and the diff must show no change. */
#include "test/support/fuzz_stream.h"
#include "test/support/json.h"
#include "tools/page/diff.h"
#include "tools/page/load.h"
#include "tools/page/html.h"
#include "tools/page/svg.h"
#include "tools/page/viewer.h"

enum { TEXT_MAX = 1 << 24 };

static char text[TEXT_MAX + 1];
static size_t len;
static struct ljp_reader reader;
static struct ljp_print out;
static struct ljp_page page;
static struct ljp_diff diff;

static void keep(void *ctx, const char *data, size_t n)
{
  (void)ctx;
  if (len + n <= TEXT_MAX)
    memcpy(text + len, data, n);
  len += n;
}

static void begin(void)
{
  len = 0;
  ljp_print_begin(&out, -1);
  out.sink = keep;
}

static void check_html(void)
{
  begin();
  ljp_page_html(&page, &out);
  ljp_print_end(&out);
  if (len > TEXT_MAX)
    return;
  size_t size = len - ljp_viewer_before_bytes - ljp_viewer_behind_bytes;
  const char *data = text + ljp_viewer_before_bytes;
  if (memchr(data, '<', size) || !json_valid(data, size))
    abort();
}

/* Both sums wrap in the same way. */
static void check_rows(const struct ljp_profile *p)
{
  uint64_t samples = 0, ns = 0;
  for (int v = LJP_PAGE_VIEW_CPU; v <= LJP_PAGE_VIEW_WALL; v++)
    for (size_t i = 0; i < page.rows[v].count; i++) {
      samples += page.rows[v].rows[i].count;
      ns += page.rows[v].rows[i].weight;
      uint32_t node = page.rows[v].rows[i].node;
      if (node >= page.node_count ||
          (page.lua_nodes &&
           (node >= page.lua_count || page.lua_nodes[node] >= page.node_count)))
        abort();
    }
  if (samples != p->totals.samples + p->totals.wall_samples ||
      ns != p->totals.cpu_ns + p->totals.wall_ns)
    abort();
}

/* fold: with both views. It turns p to the Lua view. */
static void check_diff(struct ljp_profile *p, bool fold)
{
  static const char *const files[] = {"a", "b"};
  if (ljp_diff_init(&diff, p, p, files, LJP_DIFF_AUTO) == LJP_OK &&
      (!fold || ljp_diff_fold(&diff, p, p) == LJP_OK))
    for (size_t i = 0; i < diff.node_count; i++)
      for (int v = 0; v < LJP_PAGE_VIEWS; v++)
        if (ljp_diff_sure(&diff.nodes[v][i]))
          abort();
  begin();
  ljp_diff_html(&diff, &out);
  ljp_print_end(&out);
  ljp_diff_fini(&diff);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  const struct ljp_profile_options options = {
      .no_symbols = true, .points = true, .gc_cost = true};
  struct ljp_profile *p = ljp_profile_new(&options);
  if (!p || ljp_reader_memory(&reader, data, size))
    abort();
  enum ljp_status status = ljp_profile_add(p, &reader);
  ljp_reader_fini(&reader);
  if (!status)
    status = ljp_profile_finish(p);
  if (!status && !ljp_page_init(&page) && !ljp_page_load(&page, p, "x.ljp") &&
      (size % 2 || !ljp_page_load_lua(&page, p))) {
    check_html(); /* It sorts the rows. */
    check_rows(p);
    begin();
    if (ljp_page_svg(&page, LJP_PAGE_VIEW_CPU, "ns", &out))
      abort();
    ljp_print_end(&out);
    check_diff(p, size % 4 > 1);
  }
  if (!status)
    ljp_page_fini(&page);
  ljp_profile_free(p);
  return 0;
}
