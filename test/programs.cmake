# What the end-to-end tests run: host programs and judges. With every C library.
# Sets LJP_TEST_BUILD, the folder that the tests take for the build folder.

# A program that links our library: e2e/NAME.c.
function(ljp_host_program name)
  add_executable(${name} e2e/${name}.c)
  target_link_libraries(${name} PRIVATE ljp_flags ${ARGN} Threads::Threads)
  ljp_see_luajit(${name})
endfunction()

# ljp_shell_test(NAME [LABEL]): test/e2e/NAME.sh as a test, see test/e2e/lib.sh.
function(ljp_shell_test name)
  set(label e2e)
  if(ARGN)
    set(label ${ARGN})
  endif()
  add_test(NAME ${label}/${name} COMMAND ${PROJECT_SOURCE_DIR}/test/e2e/${name}.sh)
  set_tests_properties(${label}/${name} PROPERTIES LABELS ${label} TIMEOUT 600
    ENVIRONMENT "SOURCE_DIR=${PROJECT_SOURCE_DIR};BUILD_DIR=${LJP_TEST_BUILD};\
CC=${CMAKE_C_COMPILER};LJP_BASE=${LUAJIT_BASE};LJP_SOURCE=${LUAJIT_SOURCE_DIR}${LJP_TEST_ENVIRONMENT}")
endfunction()

# ljp_patient(TESTS...): tests of more than a minute, which a busy machine may
# slow down ten times. The limit is for hangs.
function(ljp_patient)
  foreach(test ${ARGN})
    set_tests_properties(e2e/${test} PROPERTIES TIMEOUT 1500)
  endforeach()
endfunction()

# ljp_waits(TESTS...): those of these tests that there are spend most of their time
# waiting. `./run test` runs more of them at a time than other tests.
function(ljp_waits)
  foreach(test ${ARGN})
    if(TEST e2e/${test})
      set_property(TEST e2e/${test} APPEND PROPERTY LABELS waits)
    endif()
  endforeach()
endfunction()

# ljp_not_here(REASON TESTS...): tests that are skipped and say why.
function(ljp_not_here reason)
  foreach(test ${ARGN})
    add_test(NAME ${test} COMMAND sh -c "echo \"skipped: ${reason}\"; exit 77")
    set_tests_properties(${test} PROPERTIES SKIP_RETURN_CODE 77 LABELS skipped)
  endforeach()
endfunction()

# Checks that streams add up; each shell test runs it on its streams.
add_executable(account support/account.c)
target_link_libraries(account PRIVATE ljp_reader)
add_executable(instructions e2e/instructions.c)
target_link_libraries(instructions PRIVATE ljp_unwind)
ljp_shell_test(instructions)

# Host unwinding at each instruction, by CFI and by following the code.
add_executable(unwind_oracle e2e/unwind_oracle.c e2e/unwind_workloads.c)
target_link_libraries(unwind_oracle PRIVATE ljp_unwind m dl)
target_link_options(unwind_oracle PRIVATE -Wl,-z,lazy)
set_source_files_properties(e2e/unwind_oracle.c e2e/unwind_workloads.c
  PROPERTIES COMPILE_OPTIONS
  "-O2;-fomit-frame-pointer;-fexceptions;-Wno-infinite-recursion")
if(NOT LJPROF_SANITIZE AND NOT LJPROF_COVERAGE)
  add_test(NAME e2e/unwind_oracle COMMAND unwind_oracle -v)
  add_test(NAME e2e/unwind_code COMMAND unwind_oracle -c)
  set_tests_properties(e2e/unwind_code PROPERTIES LABELS e2e TIMEOUT 1800)
  set_tests_properties(e2e/unwind_oracle PROPERTIES LABELS e2e TIMEOUT 1800)
endif()
if(NOT LJPROF)
  return()
endif()

foreach(name timer_host unsampled_host memprof_host memory_vms memprof_captured
    heap_host join_afterwards join_edges join_faulty join_host join_memory_host
    harmless_host late_signals stacks_host tarantool_host)
  ljp_host_program(${name} libluajit)
endforeach()
if(LJPROF_COVERAGE)
  # At -O0 the host's frames keep old addresses in libc's allocator, so ljprof would
  # never find a safe moment to join it. Nobody asks for the host's own lines.
  set_source_files_properties(e2e/join_host.c PROPERTIES COMPILE_OPTIONS
    "-O2;-fno-profile-arcs;-fno-test-coverage")
endif()
if(NOT LJPROF_SANITIZE) # Sanitizers have locks of their own around fork().
  ljp_host_program(copy_host libluajit dl)
  ljp_host_program(heap_moments libluajit dl)
  ljp_host_program(fork_host dl)
  # A library that replaces malloc() and locks, too.
  add_library(failing_calls MODULE e2e/failing_calls.c)
  target_link_libraries(failing_calls PRIVATE ljp_flags dl)
  set_target_properties(failing_calls PROPERTIES PREFIX ""
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/test)
  set(modes vms first chunks)
  if(NOT LJP_MUSL)
    ljp_host_program(wedged_host libluajit)
  endif()
  if(LJP_MUSL)
    ljp_not_here("musl never unloads a library" e2e/fork_unload)
  else()
    list(APPEND modes unload)
  endif()
  foreach(mode ${modes})
    add_test(NAME e2e/fork_${mode}
      COMMAND fork_host $<TARGET_FILE:libluajit> ${mode})
    set_tests_properties(e2e/fork_${mode} PROPERTIES LABELS e2e TIMEOUT 300)
  endforeach()
endif()
if(NOT LJPROF_SANITIZE AND NOT LJPROF_COVERAGE)
  ljp_host_program(stack_host libluajit)
  target_sources(stack_host PRIVATE $<TARGET_OBJECTS:ljp_side_sigsafe>)
  add_test(NAME e2e/sigsafe_sampler COMMAND
    ${CMAKE_CURRENT_SOURCE_DIR}/e2e/sigsafe_symbols.sh
    $<TARGET_OBJECTS:ljp_sampler_sigsafe> $<TARGET_OBJECTS:ljp_side_sigsafe>
    $<TARGET_OBJECTS:ljp_walk_sigsafe>
    $<TARGET_OBJECTS:ljp_guest_sigsafe> $<TARGET_OBJECTS:ljp_sigsafe>
    $<TARGET_OBJECTS:ljp_unwind_sigsafe> $<TARGET_OBJECTS:ljp_saferead_sigsafe>
    COMMAND_EXPAND_LISTS)
  set_tests_properties(e2e/sigsafe_sampler PROPERTIES LABELS e2e)
  if(LJP_MUSL)
    set_tests_properties(e2e/sigsafe_sampler PROPERTIES
      ENVIRONMENT LJP_LIBC=musl)
  endif()
endif()

# What -DLJPROF_MARKERS=OFF builds: the static library with another markers.c.
add_executable(luajit_no_markers ${PROJECT_SOURCE_DIR}/src/luajit/command.c
  ${PROJECT_SOURCE_DIR}/src/luajit/traces/markers.c)
ljp_see_luajit(luajit_no_markers INTERNALS)
target_compile_definitions(luajit_no_markers PRIVATE LJP_NO_MARKERS=1)
add_dependencies(luajit_no_markers libluajit_static)
target_link_options(luajit_no_markers PRIVATE -Wl,--wrap=luaL_openlibs)
target_link_libraries(luajit_no_markers PRIVATE ljp_flags
  ${CMAKE_BINARY_DIR}/luajit/patched/luajit.o
  ${CMAKE_BINARY_DIR}/lib/libluajit-5.1.a m dl Threads::Threads)

# Joins a program many times; and the same client with the faults of
# src/base/join_step.c at each of its steps.
file(GLOB join_client ${PROJECT_SOURCE_DIR}/tools/join/*.c)
add_executable(join_loop ${PROJECT_SOURCE_DIR}/bench/join_loop.c)
target_link_libraries(join_loop PRIVATE ljp_record)
add_executable(join_faults ${PROJECT_SOURCE_DIR}/tools/main.c
  ${PROJECT_SOURCE_DIR}/src/base/join_step.c ${join_client})
target_compile_definitions(join_faults PRIVATE LJP_DEBUG=1
  LJP_VERSION="${PROJECT_VERSION}")
if(LJPROF_ANALYZER)
  target_link_libraries(join_faults PRIVATE ljp_tools)
else()
  target_sources(join_faults PRIVATE ${PROJECT_SOURCE_DIR}/tools/absent.c)
  target_link_libraries(join_faults PRIVATE ljp_record)
endif()

# A program that lies about having our library.
add_executable(join_forged e2e/join_forged.c)
target_link_libraries(join_forged PRIVATE ljp_core Threads::Threads)

add_executable(protos_judge e2e/protos_judge.c)
target_link_libraries(protos_judge PRIVATE ljp_reader ljp_core)
add_library(tarantool_module MODULE e2e/tarantool_module.c)
set_target_properties(tarantool_module PROPERTIES PREFIX ""
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/test)
ljp_see_luajit(tarantool_module)
