/*
** Which seccomp filters only let system calls fail, and which may end a program.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <cmocka.h>
#include "tools/join/filter.h"

#define LOAD(field)                                                            \
  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF(op, value, yes, no) BPF_JUMP(BPF_JMP | (op) | BPF_K, value, yes, no)
#define ANSWER(action) BPF_STMT(BPF_RET | BPF_K, action)
#define DO(op, value) BPF_STMT(BPF_ALU | (op) | BPF_K, value)
#define KILL ANSWER(SECCOMP_RET_KILL_PROCESS)
#define ALLOW ANSWER(SECCOMP_RET_ALLOW)
#define FAIL ANSWER(SECCOMP_RET_ERRNO | 1)

#define judge(...)                                                             \
  judge_code((struct sock_filter[]){__VA_ARGS__},                              \
             sizeof(struct sock_filter[]){__VA_ARGS__} /                       \
                 sizeof(struct sock_filter))

static bool judge_code(const struct sock_filter *code, size_t count)
{
  return ljp_filter_is_harmless(code, count);
}

/* What containers have: a list, and a refusal for all other calls. Programs of other
** machines end. */
static void a_container(void **state)
{
  (void)state;
  assert_true(judge(LOAD(arch), IF(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0), KILL,
                    LOAD(nr), IF(BPF_JGE, 200, 2, 0), IF(BPF_JEQ, 101, 1, 0),
                    ALLOW, FAIL));
  assert_true(judge(ALLOW));
  assert_true(judge(FAIL));
  assert_true(judge(ANSWER(SECCOMP_RET_LOG)));
}

static void answers_that_harm(void **state)
{
  (void)state;
  assert_false(judge(KILL));
  assert_false(judge(ANSWER(SECCOMP_RET_KILL_THREAD)));
  assert_false(judge(ANSWER(SECCOMP_RET_TRAP)));
  assert_false(judge(ANSWER(SECCOMP_RET_TRACE)));
  assert_false(judge(ANSWER(SECCOMP_RET_USER_NOTIF)));
  assert_false(judge(ANSWER(0x12340000)));
}

static void one_call_that_ends(void **state)
{
  (void)state;
  assert_false(judge(LOAD(nr), IF(BPF_JEQ, 0, 1, 0), ALLOW, KILL));
  assert_false(judge(LOAD(nr), IF(BPF_JEQ, 1023, 1, 0), ALLOW, KILL));
  /* There are no such calls. */
  assert_true(judge(LOAD(nr), IF(BPF_JEQ, 5000, 1, 0), ALLOW, KILL));
  assert_true(judge(LOAD(nr), IF(BPF_JSET, 0x40000000, 1, 0), ALLOW, KILL));
}

/* An argument may have any value. */
static void arguments(void **state)
{
  (void)state;
  assert_false(judge(LOAD(args[0]), IF(BPF_JEQ, 7, 1, 0), ALLOW, KILL));
  assert_false(judge(LOAD(args[1]), IF(BPF_JGT, 7, 0, 1), ALLOW, KILL));
  assert_false(
      judge(LOAD(instruction_pointer), IF(BPF_JSET, 1, 1, 0), ALLOW, KILL));
  assert_true(judge(LOAD(args[0]), IF(BPF_JEQ, 7, 1, 0), ALLOW, FAIL));
  /* Where two ways meet, a word is known only if both have the same. */
  assert_false(judge(LOAD(args[0]), IF(BPF_JEQ, 7, 0, 1),
                     BPF_STMT(BPF_LD | BPF_IMM, 1), /* or the argument */
                     IF(BPF_JEQ, 1, 1, 0), KILL, ALLOW));
  assert_true(
      judge(LOAD(args[0]), IF(BPF_JEQ, 7, 0, 2), BPF_STMT(BPF_LD | BPF_IMM, 1),
            BPF_STMT(BPF_JMP | BPF_JA, 1), BPF_STMT(BPF_LD | BPF_IMM, 1),
            IF(BPF_JEQ, 1, 1, 0), KILL, ALLOW));
}

static void calculations(void **state)
{
  (void)state;
  assert_true(judge(BPF_STMT(BPF_LD | BPF_IMM, 6), DO(BPF_ADD, 4),
                    DO(BPF_SUB, 2), DO(BPF_MUL, 3), DO(BPF_DIV, 2),
                    DO(BPF_AND, 0xc), DO(BPF_OR, 1), DO(BPF_XOR, 3),
                    DO(BPF_LSH, 2), DO(BPF_RSH, 1), DO(BPF_NEG, 0),
                    IF(BPF_JEQ, (uint32_t)-28, 1, 0), KILL, ALLOW));
  assert_true(judge(BPF_STMT(BPF_LD | BPF_IMM, 5), BPF_STMT(BPF_ST, 15),
                    LOAD(args[0]), BPF_STMT(BPF_LDX | BPF_MEM, 15),
                    BPF_STMT(BPF_MISC | BPF_TXA, 0), IF(BPF_JEQ, 5, 1, 0), KILL,
                    ALLOW));
  assert_true(judge(BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
                    IF(BPF_JEQ, sizeof(struct seccomp_data), 1, 0), KILL,
                    ALLOW));
  /* An answer that was calculated. */
  assert_true(judge(BPF_STMT(BPF_LD | BPF_IMM, SECCOMP_RET_ALLOW),
                    BPF_STMT(BPF_RET | BPF_A, 0)));
  assert_false(judge(LOAD(args[0]), BPF_STMT(BPF_RET | BPF_A, 0)));
  assert_false(
      judge(LOAD(args[0]), DO(BPF_DIV, 0), IF(BPF_JEQ, 0, 1, 0), KILL, ALLOW));
}

/* The kernel accepts none of these. */
static void no_filters(void **state)
{
  (void)state;
  static struct sock_filter many[BPF_MAXINSNS + 1];
  assert_false(ljp_filter_is_harmless(NULL, 0));
  assert_false(ljp_filter_is_harmless(many, BPF_MAXINSNS + 1));
  assert_false(judge(LOAD(nr)));
  assert_false(judge(IF(BPF_JEQ, 1, 200, 200), ALLOW));
  assert_false(judge(BPF_STMT(BPF_JMP | BPF_JA, UINT32_MAX), ALLOW));
  assert_false(judge(BPF_STMT(BPF_ST, 16), ALLOW));
  assert_false(judge(BPF_STMT(BPF_LD | BPF_MEM, 16), ALLOW));
  assert_false(judge(BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0), ALLOW));
  assert_false(judge(BPF_STMT(BPF_ALU | 0xf0, 0), ALLOW));
  assert_false(judge(BPF_STMT(BPF_JMP | 0xf0, 0), ALLOW));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_container),        cmocka_unit_test(answers_that_harm),
      cmocka_unit_test(one_call_that_ends), cmocka_unit_test(arguments),
      cmocka_unit_test(calculations),       cmocka_unit_test(no_filters),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
