/*
** A library that is loaded and unloaded repeatedly while it is sampled. It
** calls back a Lua function, so its frames are below that function's.
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
