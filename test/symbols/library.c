/* A library with its own places (see host.c). WHICH makes its builds differ. */
#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

void run_places(void (*note)(int, const char *));

static inline __attribute__((always_inline)) void
JOIN(in_library_, WHICH)(void (*note)(int, const char *))
{
  note(__LINE__, "in_library_" TEXT(WHICH) ";run_places");
}

/* An exported function before the hidden ones, whose name a wrong guess would
** give to them. */
__attribute__((noinline)) int exported_before(int x)
{
  return x * 3;
}

/* A function in assembly without a size, before a hidden function. */
__asm__(".section places, \"ax\", @progbits\n"
        ".globl no_size\n"
        ".type no_size, @function\n"
        "no_size: nop\n"
        ".text\n");

static __attribute__((noinline, noclone, section("places"))) void
JOIN(hidden_, WHICH)(void (*note)(int, const char *))
{
  note(__LINE__, "hidden_" TEXT(WHICH));
  __asm__ volatile("");
}

void run_places(void (*note)(int, const char *))
{
  JOIN(in_library_, WHICH)(note);
  note(__LINE__, "run_places");
  JOIN(hidden_, WHICH)(note);
  __asm__ volatile("");
}
