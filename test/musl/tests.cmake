# The tests of a build without the analyzer: all of the runtime, and what
# `ljprof record` does. The streams are read by a full ljprof, from a build with
# the analyzer (for musl: one for glibc): LJPROF_WHOLE_COMMAND. Both are in
# LJP_TEST_BUILD/bin, as one command.
set(LJPROF_WHOLE_COMMAND ${PROJECT_SOURCE_DIR}/build/bin/ljprof CACHE FILEPATH
    "A full ljprof, which reads what the tests record")
set(LJP_TEST_BUILD ${CMAKE_BINARY_DIR}/both)
configure_file(${CMAKE_CURRENT_LIST_DIR}/both.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/both.cmake @ONLY)
set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES
  ${CMAKE_CURRENT_BINARY_DIR}/both.cmake)
set(LJP_TEST_ENVIRONMENT ";LJP_ANALYZER=OFF")
if(LJP_MUSL) # There is no libzstd either.
  string(APPEND LJP_TEST_ENVIRONMENT ";LJP_NO_ZSTD=1;LJP_LIBC=musl")
endif()
include(programs.cmake)

file(GLOB units RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/unit unit/test_*.c)
list(TRANSFORM units REPLACE "(.*)[.]c" "unit/\\1")
ljp_not_here("it is run where the analyzer is built" ${units} e2e/ljm
  e2e/tarantool e2e/tarantool_tools e2e/sysprof_host)
if(LJP_MUSL)
  ljp_not_here("it records programs of the machine, which have glibc"
    e2e/interrupts e2e/record_nothing)
  ljp_not_here("musl has no LD_DEBUG" e2e/bound_calls)
  ljp_not_here("it replaces glibc's functions" e2e/heap_faults)
else()
  foreach(name interrupts record_nothing bound_calls heap_faults)
    ljp_shell_test(${name})
  endforeach()
endif()

foreach(name timer_host sysprof record relative_module executes
    rotation_fails rotation_limit refused_start duration
    record_child_refused sysprof_truth unsampled wall trace_events markers
    jitdump names protos_gone exit exec copies source_dir memprof_host
    memory_vms memprof_exact memprof_again memprof_faults memprof_inlined
    memprof_leak memprof_storm memprof_sampled tarantool_api
    harmless stack stack_bounds hidden_text examples exports install off
    ljprof lua_fields own_work late_signals heap_snapshot heap_graph
    heap_session heap_limits heap_moments heap_shapes
    join join_afterwards join_children join_edges join_faulty join_heap
    join_jitdump join_liar join_list join_mark join_meanwhile join_memory
    join_peer join_places join_record join_refusals join_rotation join_snapshot
    join_stacks listen)
  ljp_shell_test(${name})
endforeach()
ljp_patient(join join_afterwards join_faulty join_meanwhile join_memory
  join_snapshot)
set_tests_properties(e2e/join_places PROPERTIES SKIP_RETURN_CODE 77)

if(LJP_MUSL)
  ljp_shell_test(static_musl)
endif()

add_subdirectory(vm)
add_subdirectory(storm)
add_subdirectory(mem)
add_subdirectory(hosts/zoo)
add_subdirectory(oracle)
add_subdirectory(truth)
