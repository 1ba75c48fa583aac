# The stream: format, ring, writer, sessions.
ljp_unit_test(test_format ljp_core)
target_compile_definitions(test_format PRIVATE
  LJP_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

add_executable(labelled_stream stream/labelled.c)
target_link_libraries(labelled_stream PRIVATE ljp_flags ljp_core)

add_executable(golden_streams stream/golden.c)
target_link_libraries(golden_streams PRIVATE ljp_flags ljp_stream)
ljp_unit_test(test_golden ljp_stream)
add_dependencies(test_golden golden_streams)
target_compile_definitions(test_golden PRIVATE
  LJP_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
  LJP_GOLDEN_PROGRAM="$<TARGET_FILE:golden_streams>")

ljp_unit_test(test_ring ljp_stream)
ljp_unit_test(test_intern ljp_stream)
ljp_unit_test(test_held ljp_stream)
ljp_unit_test(test_held_table ljp_stream)
ljp_unit_test(test_writer ljp_stream)
ljp_unit_test(test_writer_labels ljp_stream)
ljp_unit_test(test_writer_protos ljp_stream)
ljp_unit_test(test_ljm ljp_stream ljp_parsers)
ljp_unit_test(test_heap ljp_stream ljp_parsers)
target_compile_definitions(test_heap PRIVATE
  LJP_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
ljp_unit_test(test_elf_functions ljp_stream)

# Two libraries to load and unload.
foreach(letter a b)
  add_library(ljp_loadable_${letter} MODULE stream/loadable.c)
  target_compile_definitions(ljp_loadable_${letter} PRIVATE
    LJP_LETTER=${letter})
  target_link_options(ljp_loadable_${letter} PRIVATE -Wl,--build-id)
endforeach()
ljp_unit_test(test_newfile ljp_core)
target_link_options(test_newfile PRIVATE LINKER:--wrap=openat
  LINKER:--wrap=linkat)
ljp_unit_test(test_sinks ljp_stream)
ljp_unit_test(test_sink_replace ljp_stream)
ljp_unit_test(test_vms ljp_stream)
target_sources(test_vms PRIVATE
  ${PROJECT_SOURCE_DIR}/profilers/session/vms.c
  ${PROJECT_SOURCE_DIR}/profilers/session/vms_claim.c)
ljp_unit_test(test_session ljp_stream ${CMAKE_DL_LIBS})
target_link_options(test_session PRIVATE LINKER:--wrap=clock_gettime)
add_dependencies(test_session ljp_loadable_a ljp_loadable_b)
target_compile_definitions(test_session PRIVATE
  LJP_LOADABLE_A="$<TARGET_FILE:ljp_loadable_a>"
  LJP_LOADABLE_B="$<TARGET_FILE:ljp_loadable_b>")

if(NOT LJPROF_SANITIZE AND NOT LJPROF_COVERAGE)
  add_test(NAME e2e/sigsafe_stream COMMAND
    ${CMAKE_CURRENT_SOURCE_DIR}/e2e/sigsafe_symbols.sh
    $<TARGET_OBJECTS:ljp_sigsafe> COMMAND_EXPAND_LISTS)
  set_tests_properties(e2e/sigsafe_stream PROPERTIES LABELS e2e)
endif()

ljp_unit_test(test_stream_harsh ljp_stream)
ljp_unit_test(test_stream_fork ljp_stream)

# What ./run test also runs under TSan.
foreach(name ring intern session sinks stream_harsh stream_fork)
  set_property(TEST unit/test_${name} APPEND PROPERTY LABELS threads)
endforeach()
# It measures how far the file is behind.
set_tests_properties(unit/test_stream_harsh PROPERTIES RUN_SERIAL ON)

ljp_unit_test(test_stream_memory ljp_stream)
target_link_options(test_stream_memory PRIVATE LINKER:--wrap=malloc
  LINKER:--wrap=calloc LINKER:--wrap=realloc LINKER:--wrap=strdup
  LINKER:--wrap=mmap LINKER:--wrap=pthread_create)
