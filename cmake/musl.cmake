# Toolchain: Debian's musl-tools as a stand-in for a system with musl. Debian has
# no library for musl besides libc, so there is no analyzer and no cmocka.
set(musl ${CMAKE_CURRENT_LIST_DIR}/../.cache/musl)
execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/make-musl ${musl}
                RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "There is no compiler for musl, see the line above.")
endif()
get_filename_component(musl ${musl} ABSOLUTE)
set(CMAKE_C_COMPILER ${musl}/cc)
set(LJPROF_ANALYZER OFF CACHE BOOL "")
set(LJP_ONLY_LIBC ON) # no other libraries, no C++
