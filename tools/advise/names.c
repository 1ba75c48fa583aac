/*
** What the names of machine code tell about a sample: functions of LuaJIT, and
** a few of libc. No name of a program is in the table. Without symbols, what
** the VM's states tell remains (facts.c). Also, which builtins read input.
*/
#include <string.h>

#include "tools/advise/advise.h"

/* How the name begins, and what it means. The first entry that fits counts. */
static const struct {
  const char *prefix;
  uint32_t marks;
} names[] = {
    {"lj_gc_step", MARK_GC},
    {"lj_gc_full", MARK_GC},
    {"gc_onestep", MARK_GC},
    {"gc_sweep", MARK_GC},
    {"gc_traverse", MARK_GC | MARK_LIVE},
    {"gc_mark", MARK_GC | MARK_LIVE},
    {"gc_finalize", MARK_GC},
    {"propagatemark", MARK_GC | MARK_LIVE},
    {"lj_vm_exit", MARK_EXIT},
    {"lj_trace_exit", MARK_EXIT},
    {"lj_snap_restore", MARK_EXIT},
    {"lj_ccallback_", MARK_CALLBACK},
    {"lj_vm_ffi_callback", MARK_CALLBACK},
    {"callback_conv_", MARK_CALLBACK},
    {"lj_meta_cat", MARK_STRING},
    {"lj_BC_CAT", MARK_STRING},
    {"lj_buf_", MARK_STRING},
    {"lj_str_new", MARK_STRING},
    {"lj_strfmt_", MARK_STRING},
    {"lj_tab_resize", MARK_GROW},
    {"rehashtab", MARK_GROW},
    {"lj_tab_newkey", MARK_GROW},
    {"lj_tab_reasize", MARK_GROW},
    {"lj_tab_len", MARK_LENGTH},
    {"lj_BC_LEN", MARK_LENGTH},
    {"lj_tab_new", MARK_TABLE},
    {"lj_tab_dup", MARK_TABLE},
    {"lj_BC_TNEW", MARK_TABLE},
    {"lj_BC_TDUP", MARK_TABLE},
    {"lj_func_new", MARK_CLOSURE},
    {"lj_BC_FNEW", MARK_CLOSURE},
    {"lj_func_closeuv", MARK_CLOSURE},
    {"lj_BC_UCLO", MARK_CLOSURE},
    {"lj_vm_next", MARK_NEXT},
    {"lj_tab_next", MARK_NEXT},
    {"lj_BC_ITERN", MARK_NEXT},
    {"lj_BC_ISNEXT", MARK_NEXT},
    {"lj_vm_IITERN", MARK_NEXT},
    {"lua_call", MARK_CALL},
    {"lua_pcall", MARK_CALL},
    {"lj_vm_call", MARK_CALL},
    {"lj_vm_pcall", MARK_CALL},
    {"lj_vm_return", MARK_CALL},
    {"lj_vm_leave", MARK_CALL},
    {"_Unwind_", MARK_THROW},
    {"lj_err_throw", MARK_THROW},
    {"err_raise", MARK_THROW},
    {"lj_err_unwind", MARK_THROW},
    {"lj_alloc_free", MARK_FREE},
    {"lj_tab_free", MARK_FREE},
    {"lj_mem_free", MARK_FREE},
    {"lj_str_free", MARK_FREE},
    {"lj_mem_new", MARK_NEW},
    {"lj_mem_realloc", MARK_NEW},
    {"lj_str_resize", MARK_NEW},
    {"__lll_lock", MARK_LOCK},
    {"___lll_lock", MARK_LOCK},
    {"pthread_mutex_", MARK_LOCK},
    {"__pthread_mutex_", MARK_LOCK},
    {"___pthread_mutex_", MARK_LOCK},
    {"pthread_rwlock_", MARK_LOCK},
    {"__pthread_rwlock_", MARK_LOCK},
    {"___pthread_rwlock_", MARK_LOCK},
    {"sem_wait", MARK_LOCK},
    {"__new_sem_wait", MARK_LOCK},
    {"flock", MARK_LOCK},
};

uint32_t ljp_advise_marks(const struct ljp_profile *p,
                          const struct ljp_profile_frame *f)
{
  struct ljp_str name = ljp_profile_str(p, f->name);
  if (f->kind == LJP_FRAME_KERNEL)
    return MARK_KERNEL;
  if ((f->kind != LJP_FRAME_HOST && f->kind != LJP_FRAME_VM) || !name.len)
    return 0;
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
    size_t len = strlen(names[i].prefix);
    if (name.len >= len && memcmp(name.data, names[i].prefix, len) == 0)
      return names[i].marks;
  }
  /* memcpy and memmove, in all of libc's variants. */
  if (name.len >= 6 && (memmem(name.data, name.len, "memcpy", 6) ||
                        memmem(name.data, name.len, "memmove", 7)))
    return MARK_COPY;
  return 0;
}

/* Whether a function reads input. The C library reads ahead, so larger calls
** save little; and what is read must be allocated. */
bool advise_reads(const struct ljp_profile *p, uint32_t function)
{
  static const char *const readers[] = {"file:read", "io.read",
                                        "io.lines (iterator)"};
  struct ljp_str name =
      ljp_profile_str(p, p->frames[p->functions[function].frame].name);
  for (unsigned i = 0; i < sizeof readers / sizeof *readers; i++)
    if (ljp_str_same(name, (struct ljp_str){readers[i], strlen(readers[i])}))
      return true;
  return false;
}
