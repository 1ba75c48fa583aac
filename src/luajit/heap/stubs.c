/*
** Stubs before the allocators of VMs; see stubs.h.
**
** Invariants: an entry of `stub_target` is written once, before the first VM has
** its stub. A VM's `allocf` becomes a stub only by compare-and-swap, under the
** lock of VMs, and only while the VM is not barred: so its memory is there, and
** an allocator that the program sets meanwhile stays. `allocd` is not touched.
**
** A call through a stub need not be the VM's own: the program may have kept the
** stub, or may have made another VM with it, on another thread. So the stub acts
** only if one of LuaJIT's allocating functions calls it: the instruction that has
** called it says in which register the VM's global_State is.
*/
#define LUA_CORE

#include <stddef.h>
#include <stdint.h>

#include "lj_obj.h"
#include "lj_gc.h"

#include "src/base/assert.h"
#include "src/luajit/stubs.h"
#include "src/luajit/vm/lock.h"
#include "src/luajit/vm/vm_of.h"

#include "host_sizes.inc"

/* The registers that functions preserve, and the return address, as the entry
** pushes them. */
struct stub_caller {
  uint64_t saved[6];
  uint64_t rip;
};

#define STUB_BYTES 16

__attribute__((visibility("hidden")))
lua_Alloc _Atomic ljp_stub_target[LJP_GUEST_STUBS];
__attribute__((visibility("hidden"))) void (*_Atomic ljp_stub_met)(lua_State *);
extern const char ljp_stub_first[] __attribute__((visibility("hidden")));
__attribute__((visibility("hidden"))) lua_Alloc
ljp_stub_enter(const struct stub_caller *caller, uint32_t index, void **ud);

/* clang-format off */
#define PUSH(reg)                                                              \
  "  pushq %" reg "\n"                                                         \
  "  .cfi_adjust_cfa_offset 8\n"
#define POP(reg)                                                               \
  "  popq %" reg "\n"                                                          \
  "  .cfi_adjust_cfa_offset -8\n"
#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)

/* A lua_Alloc: ud in rdi, ptr in rsi, osize in rdx, nsize in rcx. What is freed
** goes straight on: its size has been subtracted from the VM's count already. */
__asm__(".pushsection .text\n"
        ".hidden ljp_stub_first\n"
        ".globl ljp_stub_first\n"
        ".type ljp_stub_first, @function\n"
        ".balign 64\n"
        "ljp_stub_first:\n"
        ".cfi_startproc\n"
        ".set .Lljp_stub, 0\n"
        ".rept " TEXT(LJP_GUEST_STUBS) "\n"
        ".balign " TEXT(STUB_BYTES) "\n"
        "  movl $.Lljp_stub, %eax\n"
        "  jmp 3f\n"
        ".set .Lljp_stub, .Lljp_stub + 1\n"
        ".endr\n"
        "3:\n"
        "  testq %rcx, %rcx\n"
        "  jz 1f\n"
        "  cmpq $0, ljp_stub_met(%rip)\n"
        "  jne 2f\n"
        "1:\n"
        "  leaq ljp_stub_target(%rip), %r11\n"
        "  jmp *(%r11,%rax,8)\n"
        "2:\n"
        PUSH("rbp") PUSH("rbx") PUSH("r12") PUSH("r13") PUSH("r14") PUSH("r15")
        "  movq %rsp, %r8\n"
        PUSH("rdi") PUSH("rsi") PUSH("rdx") PUSH("rcx") PUSH("rax")
        "  movq %r8, %rdi\n"
        "  movl %eax, %esi\n"
        "  leaq 32(%rsp), %rdx\n"
        "  call ljp_stub_enter\n"
        "  movq %rax, %r11\n"
        POP("rax") POP("rcx") POP("rdx") POP("rsi") POP("rdi")
        "  addq $48, %rsp\n"
        "  .cfi_adjust_cfa_offset -48\n"
        "  jmp *%r11\n"
        ".cfi_endproc\n"
        ".size ljp_stub_first, . - ljp_stub_first\n"
        ".popsection\n");
/* clang-format on */

/* -- Which function has which stub ----------------------------------------- */

static uint32_t stub_count;

static lua_Alloc stub_at(uint32_t index)
{
  return (lua_Alloc)(uintptr_t)(ljp_stub_first + index * STUB_BYTES);
}

/* The number of a stub; LJP_GUEST_STUBS: the function is none. */
static uint32_t stub_index(lua_Alloc alloc)
{
  uint64_t at =
      (uint64_t)(uintptr_t)alloc - (uint64_t)(uintptr_t)ljp_stub_first;
  return at < LJP_GUEST_STUBS * STUB_BYTES && at % STUB_BYTES == 0
             ? (uint32_t)(at / STUB_BYTES)
             : LJP_GUEST_STUBS;
}

/* Under the lock of VMs. NULL: there are too many functions. */
static lua_Alloc stub_for(lua_Alloc alloc)
{
  uint32_t i = 0;
  while (i < stub_count && atomic_load(&ljp_stub_target[i]) != alloc)
    i++;
  if (i == LJP_GUEST_STUBS)
    return NULL;
  if (i == stub_count) {
    atomic_store(&ljp_stub_target[i], alloc);
    stub_count++;
  }
  return stub_at(i);
}

/* -- Stubs of VMs ---------------------------------------------------------- */

static lua_Alloc stub_load(const global_State *g)
{
  return __atomic_load_n(&g->allocf, __ATOMIC_ACQUIRE);
}

/* False: the program has set another function meanwhile. */
static bool stub_swap(global_State *g, lua_Alloc from, lua_Alloc to)
{
  return __atomic_compare_exchange_n(&g->allocf, &from, to, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void stub_put(global_State *g)
{
  enum { TRIES = 8 };
  for (int i = 0; i < TRIES; i++) {
    lua_Alloc alloc = stub_load(g), stub;
    if (stub_index(alloc) != LJP_GUEST_STUBS || !(stub = stub_for(alloc)) ||
        stub_swap(g, alloc, stub))
      return;
  }
}

/* If it fails, the program has set a function of its own. */
static void stub_take(global_State *g)
{
  lua_Alloc alloc = stub_load(g);
  uint32_t index = stub_index(alloc);
  if (index != LJP_GUEST_STUBS)
    stub_swap(g, alloc, atomic_load(&ljp_stub_target[index]));
}

/* NULL: it must not be touched. The memory of a VM may have gone without
** lua_close(), with an arena of the program. */
static global_State *stub_state(const struct ljp_vm *vm)
{
  uint64_t g = atomic_load_explicit(&vm->g, memory_order_acquire);
  return vm->barred || ljp_vm_of(g) != vm ? NULL : (global_State *)(uintptr_t)g;
}

void ljp_guest_stubs_put(bool (*wants)(const void *recorder),
                         void (*met)(lua_State *L))
{
  atomic_store(&ljp_stub_met, met);
  ljp_lock(LJP_LOCK_VMS);
  for (struct ljp_vm *vm = ljp_vm_next(NULL); vm; vm = ljp_vm_next(vm)) {
    global_State *g = stub_state(vm);
    if (g && wants(vm->recorder))
      stub_put(g);
  }
  ljp_unlock(LJP_LOCK_VMS);
}

void ljp_guest_stubs_ignore(void)
{
  atomic_store(&ljp_stub_met, NULL);
}

void ljp_guest_stubs_take(void)
{
  ljp_guest_stubs_ignore();
  ljp_lock(LJP_LOCK_VMS);
  for (struct ljp_vm *vm = ljp_vm_next(NULL); vm; vm = ljp_vm_next(vm)) {
    global_State *g = stub_state(vm);
    if (g)
      stub_take(g);
  }
  ljp_unlock(LJP_LOCK_VMS);
}

void ljp_guest_stub_clear(lua_State *L)
{
  stub_take(G(L));
}

void ljp_guest_stub_bar(lua_State *L)
{
  struct ljp_vm *vm = ljp_vm_of_thread(L);
  ljp_lock(LJP_LOCK_VMS);
  if (vm)
    vm->barred = true;
  ljp_unlock(LJP_LOCK_VMS);
  stub_take(G(L));
}

/* -- A call ---------------------------------------------------------------- */

_Static_assert(offsetof(global_State, allocf) == 0, "the VM calls *(g)");

/* LuaJIT's allocating functions call *(%reg), where the register has the VM's
** global_State. Returns its place in struct stub_caller; -1: that is no such call,
** or of a register that the callee need not preserve. */
static int stub_register(const uint8_t *after)
{
  enum { R15, R14, R13, R12, RBX, RBP };
  bool high = after[-3] == 0x41;
  if (after[-2] == 0xff && after[-1] == 0x13)
    return high ? -1 : RBX;
  if (after[-2] == 0xff && (after[-1] == 0x16 || after[-1] == 0x17))
    return !high ? -1 : after[-1] == 0x16 ? R14 : R15;
  high = after[-4] == 0x41;
  if (after[-3] == 0xff && after[-2] == 0x55 && after[-1] == 0)
    return high ? R13 : RBP;
  if (after[-3] == 0xff && after[-2] == 0x14 && after[-1] == 0x24)
    return high ? R12 : -1;
  return -1;
}

static bool stub_returns_to(uint64_t rip, uintptr_t function, uint32_t bytes)
{
  enum { CALL_BYTES = 4 };
  return rip - (uint64_t)function - CALL_BYTES < bytes - CALL_BYTES;
}

/* The VM that asks for memory, and has this stub; NULL: somebody else calls. */
static global_State *stub_vm(const struct stub_caller *caller, lua_Alloc stub)
{
  if (!stub_returns_to(caller->rip, (uintptr_t)&lj_mem_newgco,
                       LJP_SIZE_lj_mem_newgco) &&
      !stub_returns_to(caller->rip, (uintptr_t)&lj_mem_realloc,
                       LJP_SIZE_lj_mem_realloc))
    return NULL;
  int i = stub_register((const uint8_t *)(uintptr_t)caller->rip);
  if (i < 0)
    return NULL;
  for (struct ljp_vm *vm = ljp_vm_next(NULL); vm; vm = ljp_vm_next(vm)) {
    global_State *g = stub_state(vm);
    if (g && caller->saved[i] == (uint64_t)(uintptr_t)g)
      return stub_load(g) == stub ? g : NULL;
  }
  return NULL;
}

/* Returns the function that the call goes on to, and exchanges its ud. */
lua_Alloc ljp_stub_enter(const struct stub_caller *caller, uint32_t index,
                         void **ud)
{
  lua_Alloc alloc = atomic_load(&ljp_stub_target[index]);
  void (*met)(lua_State *) = atomic_load(&ljp_stub_met);
  global_State *g = met ? stub_vm(caller, stub_at(index)) : NULL;
  if (!g)
    return alloc;
  met(mainthread(g));
  lua_Alloc now = stub_load(g);
  if (stub_index(now) != LJP_GUEST_STUBS)
    return alloc;
  *ud = g->allocd;
  return now;
}
