/*
** The hooks of the patches in a build without profilers: nothing.
*/
struct lua_State;
struct GCproto;
struct global_State;

void ljp_hook_vm_new(struct lua_State *L);
void ljp_hook_vm_closing(struct lua_State *L);
void ljp_hook_vm_gone(struct lua_State *L);
void ljp_hook_resize(struct lua_State *L, int begin);
void ljp_hook_proto(struct GCproto *pt);
void ljp_hook_proto_gone(struct GCproto *pt);
void ljp_hook_gc(struct global_State *g);

void ljp_hook_vm_new(struct lua_State *L)
{
  (void)L;
}

void ljp_hook_vm_closing(struct lua_State *L)
{
  (void)L;
}

void ljp_hook_vm_gone(struct lua_State *L)
{
  (void)L;
}

void ljp_hook_resize(struct lua_State *L, int begin)
{
  (void)L;
  (void)begin;
}

void ljp_hook_proto(struct GCproto *pt)
{
  (void)pt;
}

void ljp_hook_proto_gone(struct GCproto *pt)
{
  (void)pt;
}

void ljp_hook_gc(struct global_State *g)
{
  (void)g;
}
