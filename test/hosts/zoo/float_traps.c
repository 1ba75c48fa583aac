/*
** A host that turns floating-point errors into signals and works with another
** rounding mode, on threads that a profiler interrupts.
** zoo: glibc musl has no feenableexcept()
*/
#include <fenv.h>

#include "test/hosts/zoo/zoo.h"

int main(void)
{
  lua_State *L = zoo_vm();
  volatile double one = 1, three = 3, sum = 0;
  zoo_need(!fesetround(FE_UPWARD), "fesetround");
  zoo_need(feenableexcept(FE_DIVBYZERO | FE_OVERFLOW) >= 0, "feenableexcept");
  for (int i = 0; i < 10; i++) {
    zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 10));
    for (int k = 0; k < 100000; k++)
      sum += one / three;
    zoo_need(fegetround() == FE_UPWARD, "fegetround");
    zoo_need(fegetexcept() == (FE_DIVBYZERO | FE_OVERFLOW), "fegetexcept");
  }
  zoo_say("sum %.9f", sum);
  lua_close(L);
  return 0;
}
