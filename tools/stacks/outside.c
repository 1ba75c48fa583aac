/*
** Stacks of a program that cannot be joined, from outside: machine code only, by
** libdw, one thread after the other. Each is stopped by ptrace while it is read.
** What libdw needs of the files is read before that.
*/
#include "tools/stacks/outside.h"

#include <elfutils/libdwfl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/join/visit_priv.h"
#include "tools/shared/print.h"

enum { THREADS = 4096, FRAMES = 256 };

struct outside_frame {
  Dwarf_Addr pc;
  bool exact;
};

struct outside_thread {
  unsigned count;
  struct outside_frame frame[FRAMES];
};

/* -- Reading --------------------------------------------------------------- */

static int outside_take_frame(Dwfl_Frame *state, void *ctx)
{
  struct outside_thread *t = ctx;
  Dwarf_Addr pc;
  bool exact;
  if (t->count == FRAMES || !dwfl_frame_pc(state, &pc, &exact))
    return DWARF_CB_ABORT;
  t->frame[t->count++] = (struct outside_frame){pc, exact};
  return DWARF_CB_OK;
}

/* False: the thread could not be stopped. */
static bool outside_read(Dwfl *dwfl, pid_t tid, struct outside_thread *t)
{
  t->count = 0;
  if (ljp_stop_seize(tid) != LJP_STOP_GOOD)
    return false;
  enum ljp_stop stop = ljp_stop_thread(tid);
  if (stop == LJP_STOP_GOOD)
    dwfl_getthread_frames(dwfl, tid, outside_take_frame, t);
  if (stop == LJP_STOP_GOOD || stop == LJP_STOP_HALTED)
    ljp_stop_release(tid);
  return stop == LJP_STOP_GOOD;
}

/* Reads the frame information of each file, so that no thread waits for that. */
static int outside_prepare(Dwfl_Module *module, void **data, const char *name,
                           Dwarf_Addr start, void *ctx)
{
  GElf_Addr bias;
  Dwarf_Addr cfi;
  (void)data;
  (void)name;
  (void)start;
  (void)ctx;
  dwfl_module_getelf(module, &bias);
  dwfl_module_eh_cfi(module, &cfi);
  dwfl_module_getsymtab(module);
  return DWARF_CB_OK;
}

/* -- Showing --------------------------------------------------------------- */

/* libdw also gives the module next to which an address of no module lies, such as
** one of compiled code. */
static Dwfl_Module *outside_module(Dwfl *dwfl, Dwarf_Addr pc)
{
  Dwarf_Addr start = 0, end = 0;
  Dwfl_Module *module = dwfl_addrmodule(dwfl, pc);
  if (module)
    dwfl_module_info(module, NULL, &start, &end, NULL, NULL, NULL, NULL);
  return pc >= start && pc < end ? module : NULL;
}

static void outside_show_frame(struct ljp_print *out, Dwfl *dwfl,
                               const struct outside_frame *frame)
{
  Dwarf_Addr pc = frame->pc - (frame->exact ? 0 : 1);
  Dwfl_Module *module = outside_module(dwfl, pc);
  const char *name = module ? dwfl_module_addrname(module, pc) : NULL;
  const char *file = module ? dwfl_module_info(module, NULL, NULL, NULL, NULL,
                                               NULL, NULL, NULL)
                            : NULL;
  char text[64];
  snprintf(text, sizeof text, "0x%" PRIx64, (uint64_t)pc);
  name = name ? name : text;
  ljp_print_str(out, "  ");
  ljp_print_safe(out, ljp_str(name, strlen(name)));
  if (file) {
    const char *slash = strrchr(file, '/');
    file = slash ? slash + 1 : file;
    ljp_print_format(out, "%*s",
                     strlen(name) < 36 ? (int)(36 - strlen(name)) : 2, "");
    ljp_print_safe(out, ljp_str(file, strlen(file)));
  }
  ljp_print_str(out, "\n");
}

static void outside_show(struct ljp_print *out, Dwfl *dwfl, pid_t pid,
                         pid_t tid)
{
  static struct outside_thread thread;
  struct ljp_proc_status s;
  char path[64], waits[64] = "";
  if (!ljp_proc_status(pid, tid, &s))
    return;
  snprintf(path, sizeof path, "/proc/%d/task/%d/wchan", (int)pid, (int)tid);
  FILE *file = fopen(path, "r");
  if (file) {
    if (!fgets(waits, sizeof waits, file) || strcmp(waits, "0") == 0)
      waits[0] = '\0';
    fclose(file);
  }
  bool read = outside_read(dwfl, tid, &thread);
  ljp_print_format(out, "\nThread %d \"", (int)tid);
  ljp_print_safe(out, ljp_str(s.comm, strlen(s.comm)));
  ljp_print_format(out, "\": state %c%s", s.state, *waits ? " in " : "");
  ljp_print_safe(out, ljp_str(waits, strlen(waits)));
  ljp_print_str(out, "\n");
  if (!read)
    ljp_print_str(out, "  (no stack: it could not be stopped)\n");
  for (unsigned i = 0; i < thread.count; i++)
    outside_show_frame(out, dwfl, &thread.frame[i]);
}

/* -- The program ----------------------------------------------------------- */

static Dwfl *outside_open(pid_t pid)
{
  static char *debug_path;
  static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
                                           .find_debuginfo =
                                               dwfl_standard_find_debuginfo,
                                           .debuginfo_path = &debug_path};
  Dwfl *dwfl = dwfl_begin(&callbacks);
  if (!dwfl)
    return NULL;
  if (dwfl_linux_proc_report(dwfl, pid) == 0 &&
      dwfl_report_end(dwfl, NULL, NULL) == 0) {
    dwfl_getmodules(dwfl, outside_prepare, NULL, 0);
    /* The threads are stopped here, not there. */
    if (dwfl_linux_proc_attach(dwfl, pid, true) == 0)
      return dwfl;
  }
  dwfl_end(dwfl);
  return NULL;
}

bool ljp_stacks_outside(pid_t pid)
{
  static struct ljp_print out;
  static pid_t tids[THREADS];
  sigset_t keys, before;
  unsigned count = ljp_proc_threads(pid, tids, THREADS);
  Dwfl *dwfl = count ? outside_open(pid) : NULL;
  if (!dwfl)
    return false;
  /* Ctrl-Z must not stop this process while it holds a thread. */
  sigemptyset(&keys);
  sigaddset(&keys, SIGTSTP);
  sigaddset(&keys, SIGTTIN);
  sigaddset(&keys, SIGTTOU);
  sigprocmask(SIG_BLOCK, &keys, &before);
  ljp_print_begin(&out, STDOUT_FILENO);
  for (unsigned i = 0; i < count; i++)
    outside_show(&out, dwfl, pid, tids[i]);
  ljp_stop_settle();
  ljp_print_end(&out);
  sigprocmask(SIG_SETMASK, &before, NULL);
  dwfl_end(dwfl);
  return true;
}
