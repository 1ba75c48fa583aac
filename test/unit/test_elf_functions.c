/*
** Names of C functions from the symbol tables of files, which may be anything:
** the test's own program whole, cut short, with bytes changed, and replaced.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/writer/elf_functions.h"

static char path[] = "/tmp/ljprof-test-elf.XXXXXX";
static uint8_t *program;
static size_t program_bytes;

static void write_file(const uint8_t *data, size_t bytes)
{
  FILE *out = fopen(path, "wb");
  assert_non_null(out);
  assert_int_equal(fwrite(data, 1, bytes, out), bytes);
  assert_int_equal(fclose(out), 0);
}

/* What is mapped of this program, and says that it comes from the path. */
static struct ljp_modules module_of(struct ljp_module *m)
{
  struct ljp_modules list;
  ljp_modules_init(&list);
  assert_int_equal(ljp_modules_look(&list, 100), LJP_OK);
  const struct ljp_module *found = NULL;
  for (size_t i = 0; i < list.count; i++)
    if (list.list[i].start <= (uintptr_t)module_of &&
        list.list[i].end > (uintptr_t)module_of)
      found = &list.list[i];
  assert_non_null(found);
  *m = *found;
  m->path = path;
  ljp_modules_fini(&list);
  return (struct ljp_modules){.list = m, .loaded = 1, .count = 1};
}

static const char *name_of(const struct ljp_elf_modules *names,
                           const struct ljp_module *m, uint64_t address)
{
  return ljp_elf_modules_name(names, m->id, address - m->bias);
}

static void a_function_is_found_from_its_first_to_its_last_byte(void **state)
{
  (void)state;
  struct ljp_module m;
  struct ljp_modules modules = module_of(&m);
  struct ljp_elf_modules names = {0};
  const uint64_t at = (uintptr_t)write_file;
  write_file(program, program_bytes);
  ljp_elf_modules_update(&names, &modules);
  assert_string_equal(name_of(&names, &m, at), "write_file");
  assert_string_equal(name_of(&names, &m, at + 1), "write_file");
  const char *before = name_of(&names, &m, at - 1);
  assert_true(!before || strcmp(before, "write_file") != 0);
  assert_null(name_of(&names, &m, m.bias));
  assert_null(ljp_elf_modules_name(&names, m.id, UINT64_MAX));
  assert_null(ljp_elf_modules_name(&names, m.id + 1, at - m.bias));
  assert_in_range(names.bytes, 1, LJP_ELF_MAX_BYTES);
  /* It is gone, and its names with it. */
  modules.count = modules.loaded = 0;
  ljp_elf_modules_update(&names, &modules);
  assert_null(name_of(&names, &m, at));
  assert_int_equal(names.bytes, 0);
  ljp_elf_modules_fini(&names);
}

static void a_file_is_read_once(void **state)
{
  (void)state;
  struct ljp_module m;
  struct ljp_modules modules = module_of(&m);
  struct ljp_elf_modules names = {0};
  unlink(path);
  ljp_elf_modules_update(&names, &modules);
  write_file(program, program_bytes);
  ljp_elf_modules_update(&names, &modules);
  assert_null(name_of(&names, &m, (uintptr_t)write_file));
  ljp_elf_modules_fini(&names);
}

static void another_build_has_no_names(void **state)
{
  (void)state;
  struct ljp_module m;
  struct ljp_modules modules = module_of(&m);
  struct ljp_elf_modules names = {0};
  write_file(program, program_bytes);
  m.build_id_len = 20;
  m.build_id[7] ^= 1;
  ljp_elf_modules_update(&names, &modules);
  assert_null(name_of(&names, &m, (uintptr_t)write_file));
  ljp_elf_modules_fini(&names);
}

/* No names, or some; but no crash. */
static void read_damaged(void)
{
  struct ljp_module m;
  struct ljp_modules modules = module_of(&m);
  struct ljp_elf_modules names = {0};
  m.build_id_len = 0;
  ljp_elf_modules_update(&names, &modules);
  for (uint64_t at = 0; at < 1 << 20; at += 4099) {
    const char *name = ljp_elf_modules_name(&names, m.id, at);
    assert_true(!name || strlen(name) > 0);
  }
  ljp_elf_modules_fini(&names);
}

static void files_cut_short_do_no_harm(void **state)
{
  (void)state;
  for (size_t i = 0; i <= 97; i++) {
    write_file(program, program_bytes / 97 * i);
    read_damaged();
  }
  for (size_t bytes = 0; bytes < sizeof(Elf64_Ehdr); bytes += 5) {
    write_file(program, bytes);
    read_damaged();
  }
}

/* In the file's head, and in the heads of its sections. */
static void changed_bytes_do_no_harm(void **state)
{
  (void)state;
  Elf64_Ehdr head;
  uint64_t random = 20011;
  memcpy(&head, program, sizeof head);
  const size_t sections = (size_t)head.e_shnum * sizeof(Elf64_Shdr);
  assert_true(head.e_shoff + sections <= program_bytes);
  for (int i = 0; i < 499; i++) {
    size_t at[3];
    uint8_t was[3];
    for (int k = 0; k < 3; k++) {
      random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
      const size_t n = (size_t)(random >> 33);
      at[k] = k ? head.e_shoff + n % sections : 4 + n % (sizeof head - 4);
      was[k] = program[at[k]];
      if (k || i % 4 == 0)
        program[at[k]] = (uint8_t)(random >> 24);
    }
    write_file(program, program_bytes);
    read_damaged();
    for (int k = 2; k >= 0; k--)
      program[at[k]] = was[k];
  }
}

static int read_program(void **state)
{
  (void)state;
  FILE *in = fopen("/proc/self/exe", "rb");
  const int fd = mkstemp(path);
  if (!in || fd < 0 || fseek(in, 0, SEEK_END))
    return -1;
  close(fd);
  program_bytes = (size_t)ftell(in);
  rewind(in);
  program = malloc(program_bytes);
  const bool ok =
      program && fread(program, 1, program_bytes, in) == program_bytes;
  fclose(in);
  return ok ? 0 : -1;
}

static int remove_file(void **state)
{
  (void)state;
  free(program);
  unlink(path);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_function_is_found_from_its_first_to_its_last_byte),
      cmocka_unit_test(a_file_is_read_once),
      cmocka_unit_test(another_build_has_no_names),
      cmocka_unit_test(files_cut_short_do_no_harm),
      cmocka_unit_test(changed_bytes_do_no_harm)};
  return cmocka_run_group_tests(tests, read_program, remove_file);
}
