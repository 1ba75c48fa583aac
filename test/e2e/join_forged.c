/*
** A program with the note of our library, but without the library. Usage:
** join_forged LIE, until SIGTERM. The note's distances, and what the entry does, are
** as the lie wants:
**   version   a version that nobody knows
**   nowhere, data, code, long, odd, stack, state
**             the entry, its end, the stack or the state is not what it must be
**   never     an entry that never says that it is there
**   file, garbage, silent, wrong
**             a door whose descriptor is a file, or a socket from which garbage,
**             nothing or another answer comes
*/
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/join.h"
#include "src/base/join_message.h"
#include "src/base/preload.h"
#include "test/support/check.h"

struct ljp_join_state forged_state;
__attribute__((aligned(4096))) char forged_stack[LJP_JOIN_STACK_BYTES];
extern struct ljp_join_note forged_note;
extern const char forged_entry[], forged_end[];

__asm__(".pushsection .text\n"
        ".balign 16\n"
        ".globl forged_entry\n"
        "forged_entry:\n"
        "  cld\n"
        "  movq %rsp, %rbx\n"
        "  call forged_enter\n"
        "  movq %rbx, %rsp\n"
        "  movl $15, %eax\n"
        "  syscall\n"
        ".globl forged_end\n"
        "forged_end:\n"
        "  hlt\n"
        ".popsection\n");
__asm__(".pushsection .note.ljprof, \"a\", %note\n"
        ".balign 4\n"
        ".long 7, 24, 1\n"
        ".asciz \"" LJP_NOTE_NAME "\"\n"
        ".balign 4\n"
        ".globl forged_note\n"
        "forged_note:\n"
        ".long 2\n"
        ".long forged_entry - .\n"
        ".long forged_end - .\n"
        ".long forged_state - .\n"
        ".long forged_stack + 65536 - .\n"
        ".long forged_state - .\n"
        ".popsection\n");

static const char *lie;
static int forged_fd = -1;

/* By the entry: no thread is made. */
void forged_enter(void);
__attribute__((used)) void forged_enter(void)
{
  struct ljp_join_state *s = &forged_state;
  if (strcmp(lie, "never") == 0)
    return;
  s->fd = forged_fd;
  __atomic_store_n(&s->step, LJP_JOIN_ENTERED, __ATOMIC_RELEASE);
  s->left_ns = 1;
  __atomic_store_n(&s->door, LJP_JOIN_DOOR_READY, __ATOMIC_RELEASE);
  __atomic_store_n(&s->step, LJP_JOIN_LEFT, __ATOMIC_RELEASE);
}

static bool lies(const char *name)
{
  return strcmp(lie, name) == 0;
}

static int32_t far_from(const int32_t *member, uint64_t to)
{
  return (int32_t)(to - (uint64_t)(uintptr_t)member);
}

/* The note, which is read-only, as the lie wants it. */
static void forge_note(void)
{
  const uintptr_t page = 4096, at = (uintptr_t)&forged_note & ~(page - 1);
  struct ljp_join_note *volatile hidden = &forged_note;
  struct ljp_join_note *n = hidden;
  CHECK(at + page >= (uintptr_t)(&forged_note + 1));
  CHECK(!mprotect((void *)at, page, PROT_READ | PROT_WRITE));
  if (lies("version"))
    n->version = 77;
  if (lies("nowhere"))
    n->entry = INT32_MIN;
  if (lies("data"))
    n->entry = far_from(&n->entry, (uintptr_t)forged_stack);
  if (lies("code")) { /* Other instructions. */
    n->entry = far_from(&n->entry, (uintptr_t)forged_entry + 1);
  }
  if (lies("long"))
    n->end = far_from(&n->end, (uintptr_t)forged_entry);
  if (lies("odd"))
    n->stack_top += 8;
  if (lies("stack"))
    n->stack_top =
        far_from(&n->stack_top, (uintptr_t)forged_entry & ~(page - 1));
  if (lies("state"))
    n->state = far_from(&n->state, (uintptr_t)forged_entry & ~(page - 1));
}

static void forge_door(void)
{
  int fd[2];
  char data[LJP_JOIN_MESSAGE_BYTES];
  if (lies("file"))
    forged_fd = dup(STDOUT_FILENO);
  if (!lies("garbage") && !lies("silent") && !lies("wrong"))
    return;
  CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd));
  forged_fd = fd[0];
  if (lies("garbage"))
    CHECK(send(fd[1], "garbage", 7, 0) == 7);
  if (lies("wrong")) {
    const struct ljp_join_message m = {.type = LJP_JOIN_STOPPED, .serial = 1};
    size_t bytes = ljp_join_pack(&m, data);
    CHECK(bytes && send(fd[1], data, bytes, 0) == (ssize_t)bytes);
  }
}

static void on_end(int number)
{
  (void)number;
  _exit(0);
}

int main(int argc, char **argv)
{
  struct epoll_event event;
  CHECK(argc == 2 && signal(SIGTERM, on_end) != SIG_ERR);
  lie = argv[1];
  forge_note();
  forge_door();
  printf("ready\n");
  fflush(stdout);
  int fd = epoll_create1(EPOLL_CLOEXEC);
  CHECK(epoll_wait(fd, &event, 1, -1) >= 0);
  return 1;
}
