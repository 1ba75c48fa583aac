// C++ places (host.c): names to be demangled, inlined ones among them.
namespace app {
template <class T> struct Widget {
  T value;
  inline __attribute__((always_inline)) void quick(void (*note)(int,
                                                                const char *))
  {
    note(__LINE__, "app::Widget<int>::quick(void (*)(int, char const*));"
                   "app::Widget<int>::draw(void (*)(int, char const*), int&&)");
  }
  __attribute__((noinline)) void draw(void (*note)(int, const char *),
                                      T &&extra)
  {
    quick(note);
    value += extra;
    note(__LINE__, "app::Widget<int>::draw(void (*)(int, char const*), int&&)");
    asm volatile("");
  }
};
namespace {
__attribute__((noinline)) void secret(void (*note)(int, const char *))
{
  note(__LINE__, "app::(anonymous namespace)::secret(void (*)(int, char "
                 "const*))");
  asm volatile("");
}
} // namespace
} // namespace app

extern "C" void run_places(void (*note)(int, const char *))
{
  app::Widget<int> widget{1};
  widget.draw(note, 2);
  app::secret(note);
}
