/*
** The reasons for which LuaJIT gives up a recording (its lj_traceerr.h), each
** with what to change. doc/guide/advice.md has a section with an example for
** each anchor. LuaJIT's number or name stands behind the text of some reasons.
*/
#include <string.h>

#include "tools/advise/advise.h"

/* clang-format off */
const struct advise_reason ljp_advise_reasons[] = {
  {"error thrown or hook called during recording", "error-thrown", 2,
   "do not throw errors in the hot path: return nil and a message; remove "
   "debug hooks"},
  {"trace too short", "trace-too-short", 1,
   "use functions that the compiler knows at the beginning of the loop or "
   "function, or call this one outside the loop"},
  {"trace too long", "trace-too-long", 2,
   "divide the loop's body into functions with loops of their own, or raise "
   "the limit if it is lower: jit.opt.start(\"maxrecord=16000\")"},
  {"trace too deep", "trace-too-deep", 2,
   "make the chain of calls shorter, or the recursion a loop"},
  {"too many snapshots", "too-many-snapshots", 2,
   "divide the loop's body into smaller loops, with fewer branches in each"},
  {"blacklisted", "blacklisted-callee", 0,
   "make the function that is called here compile: see its own finding"},
  {"retry recording", "retry-recording", 0, "nothing: LuaJIT tries again"},
  {"NYI: bytecode FNEW", "bytecode-fnew", 2,
   "define the function once, outside the loop, and pass it what it needs"},
  {"NYI: bytecode UCLO", "bytecode-uclo", 2,
   "define the function that captures the loop's variables outside the loop"},
  {"NYI: bytecode VARG", "bytecode-varg", 2,
   "give the function fixed parameters in place of '...'"},
  {"NYI: bytecode", "bytecode", 2,
   "write this operation in another way, or move it out of the loop"},
  {"leaving loop in root trace", "leaving-loop", 1,
   "give the loop more iterations each time, or unroll it by hand"},
  {"inner loop in root trace", "inner-loop", 1,
   "make the inner loop run longer, unroll it by hand if it is short, or put "
   "it into a function of its own"},
  {"loop unroll limit reached", "loop-unroll", 1,
   "make short inner loops straight code, or long enough to be compiled on "
   "their own"},
  {"bad argument type", "bad-argument", 2,
   "pass the type that the operation wants: check or convert before the loop"},
  {"JIT compilation disabled for function", "jit-off", 2,
   "remove jit.off() for this function, or call it outside the loop"},
  {"call unroll limit reached", "call-unroll", 1,
   "make the recursion a loop, or the chain of calls shorter"},
  {"down-recursion, restarting", "down-recursion", 1,
   "make the recursion a loop or a tail call"},
  {"NYI: unsupported variant of FastFunc", "builtin-variant", 2,
   "look up the C type once, outside the loop: local T = ffi.typeof(...)"},
  {"NYI: return to lower frame", "return-to-lower-frame", 1,
   "put the loop into the function that is called often, so that it does not "
   "return in the middle of the hot path"},
  {"store with nil or NaN key", "nan-key", 2,
   "check the key before the store; it is nil or NaN here"},
  {"missing metamethod", "missing-metamethod", 2,
   "give the object the metamethod, or check the type before the operation"},
  {"looping index lookup", "looping-index", 2,
   "make the chain of __index shorter; it may be circular"},
  {"NYI: mixed sparse/dense table", "mixed-table", 2,
   "keep lists and named fields in different tables, and lists without holes"},
  {"symbol not in cache", "symbol-not-in-cache", 1,
   "use each C symbol once before the loop; keep the library in a local "
   "(local C = ffi.C), not its functions"},
  {"NYI: unsupported C type conversion", "c-conversion", 2,
   "create the object without an initializer, and then set its fields; or "
   "convert before the loop"},
  {"NYI: unsupported C function type", "c-function-type", 2,
   "let the C function take and return numbers and pointers, not structs"},
  {"guard would always fail", "guard-always-fails", 1,
   "keep the types of the loop's variables the same from the start"},
  {"too many PHIs", "too-many-phis", 2,
   "use fewer variables that change in the loop: divide the loop"},
  {"persistent type instability", "type-instability", 2,
   "keep one type for each variable: do not mix nil, integers and cdata"},
  {"failed to allocate mcode memory", "mcode-memory", 2,
   "raise jit.opt.start(\"maxmcode=81920\"), or free address space near the "
   "library"},
  {"machine code too long", "machine-code-too-long", 2,
   "divide the loop, or raise jit.opt.start(\"sizemcode=256\")"},
  {"hit mcode limit", "mcode-limit", 2,
   "nothing: LuaJIT continues in new memory"},
  {"too many spill slots", "too-many-spills", 2,
   "use fewer variables at the same time: divide the loop's body"},
  {"inconsistent register allocation", "register-allocation", 2,
   "write the loop in another way; this is a limit of the compiler"},
  {"NYI: cannot assemble IR instruction", "ir-instruction", 2,
   "write this operation in another way, or move it out of the loop"},
  {"NYI: PHI shuffling too complex", "phi-shuffling", 2,
   "exchange fewer variables with each other in the loop"},
  {"NYI: register coalescing too complex", "register-coalescing", 2,
   "use fewer variables that change in the loop: divide the loop"},
  {"", "other-reasons", 2,
   "ljprof report --jit shows the places; move the cause out of the hot path"},
};
/* clang-format on */
const unsigned ljp_advise_reason_count =
    sizeof ljp_advise_reasons / sizeof *ljp_advise_reasons;

const struct advise_reason *ljp_advise_reason(struct ljp_str text)
{
  unsigned i = 0;
  for (; i + 1 < ljp_advise_reason_count; i++) {
    size_t len = strlen(ljp_advise_reasons[i].text);
    bool word = text.len > len && text.data[len] >= 'A' &&
                text.data[len] <= 'Z'; /* CALL is not CALLM. */
    if (text.len >= len &&
        memcmp(text.data, ljp_advise_reasons[i].text, len) == 0 && !word)
      break;
  }
  return &ljp_advise_reasons[i];
}
