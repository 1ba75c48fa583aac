#!/bin/sh
# Objects whose code runs in signal handlers call nothing that allocates, locks
# or is bound lazily: another one of the objects must define each undefined
# symbol, or the list below must allow it.
# Usage: sigsafe_symbols.sh OBJECT...
set -eu
[ $# -gt 0 ] || { echo "usage: sigsafe_symbols.sh OBJECT..." >&2; exit 2; }

# Calls that the compiler itself may make, and what the linker provides.
allowed='memcpy memmove memset memcmp _GLOBAL_OFFSET_TABLE_ __stack_chk_fail'
# POSIX calls these async-signal-safe. They are bound when a session starts
# (src/base/bind.h; e2e/bound_calls).
allowed="$allowed clock_gettime __errno_location"
# The guest walk only compares addresses with those of the VM's functions; the
# list of VMs is data.
allowed="$allowed lj_asm_trace lj_gc_fullgc lj_gc_step lj_gc_step_jit
  lj_opt_dce lj_opt_loop lj_opt_sink lj_trace_exit lj_trace_hot lj_trace_ins
  lj_vm_asm_begin ljp_vm_chunks ljp_vm_count"
# With musl the address of a thread-local variable is asked for (src/base/tls.h),
# and the ends of a process or thread are recognised by their addresses
# (profilers/unwind/run_code.c).
[ "${LJP_LIBC:-}" != musl ] ||
  allowed="$allowed __tls_get_addr exit _Exit abort pthread_exit"
allowed=$(echo "$allowed" | tr -s '\n ' '  ')

defined=$(nm --defined-only "$@" | awk 'NF == 3 { print $3 }' | sort -u)
undefined=$(nm --undefined-only "$@" | awk 'NF == 2 { print $2 }' | sort -u)
bad=
for symbol in $undefined; do
  case " $allowed " in *" $symbol "*) continue ;; esac
  echo "$defined" | grep -qx -- "$symbol" || bad="$bad $symbol"
done
if [ -n "$bad" ]; then
  echo "not allowed in a signal handler:$bad" >&2
  exit 1
fi
echo "$(echo "$defined" | wc -l) symbols, all signal-safe"
