/*
** Why recording was aborted, as text: LuaJIT's message with what it is about
** filled in. On the VM's own thread, inside of its compiler.
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
#include "src/luajit/vm/guest_priv.h"
#include "src/luajit/traces/traces.h"

static const char *const messages[] = {
#define TREDEF(name, msg) msg,
#include "lj_traceerr.h"
};

static const char *const bytecodes[] = {
#define NAME(name, ma, mb, mc, mt) #name,
    BCDEF(NAME)
#undef NAME
};

static const char *const instructions[] = {
#define NAME(name, m, m1, m2) #name,
    IRDEF(NAME)
#undef NAME
};

static void function_text(GCfunc *fn, char *text, size_t room)
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

/* By the message: numbers are of a bytecode, or of an instruction. */
static void about(const char *message, cTValue *info, char *text, size_t room)
{
  uint32_t number = tvisint(info)   ? (uint32_t)intV(info)
                    : tvisnum(info) ? (uint32_t)numV(info)
                                    : UINT32_MAX;
  bool bytecode = strstr(message, "bytecode") != NULL;
  text[0] = '?';
  text[1] = '\0';
  if (tvisfunc(info))
    function_text(funcV(info), text, room);
  else if (bytecode && number < sizeof bytecodes / sizeof *bytecodes)
    snprintf(text, room, "%s", bytecodes[number]);
  else if (!bytecode && number < sizeof instructions / sizeof *instructions)
    snprintf(text, room, "%s", instructions[number]);
}

void ljp_trace_reason(jit_State *J, uint32_t error, char *text, size_t room)
{
  const char *message =
      error < sizeof messages / sizeof *messages ? messages[error] : "?";
  const char *mark = strchr(message, '%');
  char what[96];
  if (!mark) {
    snprintf(text, room, "%s", message);
    return;
  }
  about(message, &J->errinfo, what, sizeof what);
  /* Each has one, of two characters. */
  snprintf(text, room, "%.*s%s%s", (int)(mark - message), message, what,
           mark + 2);
}
