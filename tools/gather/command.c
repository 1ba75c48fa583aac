/*
** ljprof gather: options, and one at a time.
*/
#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "src/base/settings.h"
#include "tools/gather/gather.h"

static const char help[] =
    "Usage: ljprof gather [OPTION]... DIR\n"
    "Looks at a folder that 'ljprof record --ring', '--continuous' or "
    "'--service' writes\n"
    "to: lists its files by process and, if asked to, puts it in order.\n"
    "\n"
    "  --service NAME  only this service\n"
    "  --merge         merge the files that dead processes of a service have "
    "left\n"
    "                  into files of 64 MiB; damaged ones stay as they are\n"
    "  --age TIME      remove the files that ended more than TIME ago (12h, "
    "7d)\n"
    "  --ring BYTES    remove the oldest files until each service takes BYTES "
    "at most\n"
    "                  (500M, 2G)\n"
    "  --help          show this help\n"
    "\n"
    "A file that is being written is never touched. Each removal is reported. "
    "With\n"
    "--merge, --age or --ring (done in this order), nothing is listed. A "
    "second\n"
    "'ljprof gather' on the same folder waits for the first.\n"
    "\n"
    "Exit code: 0 done; 1 something failed, or a file is damaged; 2 wrong "
    "usage.\n";

bool ljp_gather_look(struct ljp_gather *g)
{
  int error = ljp_store_look(&g->store);
  if (error)
    ljp_command_error("gather", "%s: %s", g->store.path, strerror(error));
  g->failed |= error != 0;
  return !error;
}

/* One at a time. False: reported. */
static bool gather_lock(const struct ljp_gather *g)
{
  enum { TRIES = 100 };
  const struct timespec pause = {.tv_nsec = 100000000};
  int error = EWOULDBLOCK;
  for (int i = 0; i < TRIES && error == EWOULDBLOCK; i++) {
    if (i)
      nanosleep(&pause, NULL);
    error = flock(g->store.dir, LOCK_EX | LOCK_NB) ? errno : 0;
  }
  if (error)
    ljp_command_error("gather", "%s: %s", g->store.path,
                      error == EWOULDBLOCK
                          ? "another ljprof gather is at work there"
                          : strerror(error));
  return !error;
}

static int gather_check(const char *service, const char *age, const char *ring)
{
  const char *flag = "--service", *value = service, *wants = "";
  if (service && !ljp_setting_accepts(LJP_SETTING_SERVICE, service))
    wants = ljp_settings_info[LJP_SETTING_SERVICE].wants;
  else if (age && ljp_setting_seconds(age) < 1)
    flag = "--age", value = age,
    wants = "a time of at least a second, such as 90m, 12h or 7d";
  else if (ring &&
           !(ljp_setting_bytes(ring) >= 0 && ljp_setting_bytes(ring) <= 1e18))
    flag = "--ring", value = ring,
    wants = "a number of bytes, such as 500M or 2G";
  if (!*wants)
    return -1;
  ljp_command_error("gather", "%s is '%s', but must be %s", flag, value, wants);
  return LJP_EXIT_USAGE;
}

int ljp_command_gather(int argc, char **argv)
{
  static struct ljp_print out;
  struct ljp_gather g = {0};
  const char *folder, *age = NULL, *ring = NULL;
  bool merge = false;
  const struct ljp_flag flags[] = {{"--service", NULL, &g.service},
                                   {"--merge", &merge, NULL},
                                   {"--age", NULL, &age},
                                   {"--ring", NULL, &ring}};
  int code = ljp_command_options("gather", help, argc, argv, flags, 4, &folder);
  if (code < 0)
    code = gather_check(g.service, age, ring);
  if (code >= 0)
    return code;
  int error = ljp_store_open(&g.store, folder);
  if (error) {
    ljp_command_error("gather", "%s: %s", folder, strerror(error));
    return LJP_EXIT_FAILED;
  }
  bool works = merge || age || ring;
  bool ready = !works || gather_lock(&g);
  if (ready && works)
    ljp_gather_recover(&g);
  if (!ready || !ljp_gather_look(&g)) {
    ljp_store_close(&g.store);
    return LJP_EXIT_FAILED;
  }
  if (merge)
    ljp_gather_merge(&g);
  if (age)
    ljp_gather_prune_age(&g, ljp_setting_seconds(age));
  if (ring)
    ljp_gather_prune_room(&g, (uint64_t)ljp_setting_bytes(ring));
  ljp_print_begin(&out, STDOUT_FILENO);
  if (!works)
    ljp_gather_list(&g, &out);
  ljp_store_close(&g.store);
  return ljp_command_end("gather", &out,
                         g.failed ? LJP_EXIT_FAILED : LJP_EXIT_OK);
}
