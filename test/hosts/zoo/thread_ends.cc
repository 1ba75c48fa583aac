/*
** C++ threads whose thread_local objects run Lua in their destructors, after
** the thread's function has returned, and a VM that is closed there.
*/
#include <atomic>
#include <thread>
#include <vector>

extern "C" {
#include "test/hosts/zoo/zoo.h"
}

namespace
{

std::atomic<long> sum{0};

struct Vm {
  lua_State *L = zoo_vm();
  ~Vm()
  {
    sum += zoo_light(L, 2);
    lua_close(L);
  }
};

struct Late {
  ~Late()
  {
    sum += zoo_work_alone(1);
  }
};

thread_local Late late;
thread_local Vm vm;

void run()
{
  static_cast<void>(&late);
  sum += zoo_light(vm.L, 2);
}

} // namespace

int main()
{
  for (int i = 0; i < 10; i++) {
    std::vector<std::thread> threads;
    for (int k = 0; k < 4; k++)
      threads.emplace_back(run);
    for (auto &t : threads)
      t.join();
  }
  run();
  zoo_say("sum %ld", sum.load());
  return 0;
}
