/*
** A library that is loaded and unloaded all the time while samples fall into
** it. Its frames lie below those of the Lua function that it calls back.
*/
int storm_descend(int (*callback)(void *), void *ctx, int depth);

__attribute__((visibility("default"), noinline)) int
storm_descend(int (*callback)(void *), void *ctx, int depth)
{
  volatile int sum = 0;
  for (int i = 0; i < 200; i++)
    sum += i ^ depth;
  if (depth == 0)
    return sum + callback(ctx);
  return storm_descend(callback, ctx, depth - 1) + (sum & 1);
}
