#!/bin/sh
# The stack that our code takes in threads of the host, by the compiler's figures
# for each function and the calls in the library's code. The limits are what
# doc/reference/stacks.md promises.
. "$(dirname "$0")/lib.sh"

limit=$(sed -n 's/.*LJP_HANDLER_BYTES = \([0-9]*\),.*/\1/p' \
  "$SOURCE_DIR/profilers/cpu/handler_stack.h")
[ -n "$limit" ] || fail "no LJP_HANDLER_BYTES"
(cd "$BUILD_DIR" && find -H src profilers -name '*.su' -exec cat {} +) > figures.txt
[ -s figures.txt ] || fail "the build has no figures (-fstack-usage)"
# musl's loader binds all calls when the library is loaded.
lazy=yes
if readelf -d "$BUILD_DIR/lib/libluajit-5.1.so.2" | grep -q BIND_NOW; then
  [ "${LJP_LIBC:-}" = musl ] ||
    fail "this test wants a library that is bound lazily (no -z now)"
  lazy=
fi
objdump -d --no-show-raw-insn "$BUILD_DIR/lib/libluajit-5.1.so.2" > code.txt

# bound WHAT ROOT=BYTES...
bound() {
  bound_if bound "$@"
}

# bound_if CALLS WHAT ROOT=BYTES...
bound_if() {
  calls=$1
  what=$2
  shift 2
  [ -n "$lazy" ] || calls=bound
  "$BUILD_DIR/bin/luajit" "$SOURCE_DIR/test/e2e/stack_bounds.lua" \
    figures.txt code.txt "$calls" "$@" > bounds.txt 2>&1 ||
    fail "$what: $(cat bounds.txt)"
  cat bounds.txt
  ok "$what"
}

bound "the handler, on the interrupted stack" ljp_sampler_signal="$limit"
bound "... and on its side stack" sampler_handle=8192 sampler_take_late=8192
bound "the handler of faults" saferead_entry_0=1024
bound "the memory profiler, in an allocation" ljp_every_hook=4352 \
  ljp_sampled_own_hook=4352 ljp_sampled_hook=4352 ljp_sampled_refused=4352 \
  ljp_recorder_phase=4352

# What the patches call, and what that calls while a session runs.
hooks=$(sed -n 's/^.* <\(ljp_hook_[a-z_]*\)>:$/\1=1536/p' code.txt |
  sed 's/^ljp_hook_trace_abort=.*/ljp_hook_trace_abort=3072/' | sort -u)
[ "$(echo "$hooks" | wc -l)" -ge 15 ] || fail "too few hooks: $hooks"
# shellcheck disable=SC2086 # words
bound "the VM's hooks" $hooks
# They run without a session, too, so nothing has bound their calls.
# shellcheck disable=SC2086 # words
bound_if early "... whose calls are bound at load" $hooks
bound "the profilers' listeners" events_on_trace=4000 sysprof_on_deferred=1024

# The interfaces, VMs that come and go, exit(), fork().
bound "the C interface" luaM_sysprof_start=4096 luaM_sysprof_stop=4096 \
  luaM_sysprof_report=4096 luaM_memprof_start=4096 luaM_memprof_stop=4096 \
  luaM_listen=4096
bound "the Lua interface" sysprof_start=5120 sysprof_stop=5120 \
  sysprof_report=5120 memprof_start=5120 memprof_stop=5120 memprof_mark=5120 \
  profile_start=5120 profile_stop=5120 autostart_begin=5120 \
  ljp_profile_listen=5120 autostart_open_door=5120
# Before the first session the loader binds calls as they are made. Whatever can
# start one binds all of them first, on a side stack.
bound_if begins "... whose starts bind all calls first" \
  luaM_sysprof_start=4096 luaM_memprof_start=4096 sysprof_start=5120 \
  memprof_start=5120 profile_start=5120 autostart_begin=5120 \
  luaM_listen=4096 ljp_profile_listen=5120 autostart_open_door=5120
bound_if binds "... where the calls to make the side stack are bound" \
  ljp_side_bind=5120
bound "the status" profile_status=7680
bound "VMs that come and go, and the end" sysprof_on_created=1536 \
  sysprof_on_closing=1536 memprof_on_closing=1536 sysprof_at_exit=1536 \
  memprof_at_exit=1536 sysprof_on_gone=1536 memprof_on_gone=1536 \
  memprof_on_created=3072 memprof_on_phase=3072
bound "... on a side stack of 256 KiB" sysprof_created_here=32768 \
  sysprof_start_here=32768 sysprof_stop_here=32768 memprof_start_here=32768 \
  memprof_stop_here=32768
bound "fork()" fork_prepare=1536 fork_parent=1536 fork_child=4352 \
  sysprof_forked=4352 memprof_forked=4352 host_before_fork=1536 \
  output_child_refused=4352 host_after_fork=1536 lock_prepare=1536 \
  lock_forked=1536 listen_forked=1536
