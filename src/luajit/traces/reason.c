/*
** Why recording was aborted, as text: LuaJIT's message with its argument filled
** in. On the VM's own thread, inside of its compiler.
*/
#define LUA_CORE

#include <stdio.h>
#include <string.h>

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_debug.h"
#include "lj_ir.h"
#include "lj_jit.h"

#include "src/luajit/functions.h"
#include "src/luajit/traces/trace.h"

static const char *const reason_messages[] = {
#define TREDEF(name, msg) msg,
#include "lj_traceerr.h"
};

/* Arrays of characters need no work of the loader. */
static const char reason_bytecodes[][8] = {
#define NAME(name, ma, mb, mc, mt) #name,
    BCDEF(NAME)
#undef NAME
};

static const char reason_instructions[][8] = {
#define NAME(name, m, m1, m2) #name,
    IRDEF(NAME)
#undef NAME
};

static void reason_function(GCfunc *fn, char *text, size_t room)
{
  const char *builtin = isluafunc(fn) ? NULL : ljp_guest_builtin(fn->c.ffid);
  if (isluafunc(fn))
    snprintf(text, room, "%s:%d", proto_chunknamestr(funcproto(fn)),
             (int)funcproto(fn)->firstline);
  else if (builtin)
    snprintf(text, room, "%s", builtin);
  else
    snprintf(text, room, "C function");
}

/* The argument as text. The message tells whether a number stands for a
** bytecode or an IR instruction. */
static void reason_about(const char *message, cTValue *info, char *text,
                         size_t room)
{
  uint32_t number = tvisint(info)   ? (uint32_t)intV(info)
                    : tvisnum(info) ? (uint32_t)numV(info)
                                    : UINT32_MAX;
  bool bytecode = strstr(message, "bytecode") != NULL;
  text[0] = '?';
  text[1] = '\0';
  if (tvisfunc(info))
    reason_function(funcV(info), text, room);
  else if (bytecode &&
           number < sizeof reason_bytecodes / sizeof *reason_bytecodes)
    snprintf(text, room, "%s", reason_bytecodes[number]);
  else if (!bytecode &&
           number < sizeof reason_instructions / sizeof *reason_instructions)
    snprintf(text, room, "%s", reason_instructions[number]);
}

void ljp_trace_reason(jit_State *J, uint32_t error, char *text, size_t room)
{
  const char *message = error < sizeof reason_messages / sizeof *reason_messages
                            ? reason_messages[error]
                            : "?";
  const char *percent = strchr(message, '%');
  char what[96];
  if (!percent) {
    snprintf(text, room, "%s", message);
    return;
  }
  reason_about(message, &J->errinfo, what, sizeof what);
  /* A message has one conversion, of two characters. */
  snprintf(text, room, "%.*s%s%s", (int)(percent - message), message, what,
           percent + 2);
}
