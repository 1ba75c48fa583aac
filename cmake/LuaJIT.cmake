# LuaJIT: fetched, patched and built.
#
#   source package or folder -> stage (patched tree) -> work (make) -> libvm.a
#
# LuaJIT's own Makefile only builds its objects, into the archive libvm.a. CMake
# links them with our objects into the libraries and the command. All of this
# happens twice: "patched" is the product; "unpatched" is the same base with the
# same flags and no patch, with which tests and benchmarks compare the product.
#
# This file defines ljp_luajit_make(), ljp_luajit_link(), ljp_luajit_archive(),
# ljp_see_luajit() and LJP_GC64.

set(LUAJIT_BASE luajit2 CACHE STRING
    "Base: a name of cmake/luajit-bases.txt (Debian's packages)")
set_property(CACHE LUAJIT_BASE PROPERTY STRINGS luajit2 luajit trixie forky)
set(LUAJIT_SOURCE_DIR "" CACHE PATH "A LuaJIT v2.1 tree to use as the base")
set(LUAJIT_XCFLAGS "" CACHE STRING
    "More -D flags for LuaJIT, e.g. -DLUAJIT_ENABLE_LUA52COMPAT")
option(LJPROF_UNPATCHED "Build the unpatched base too, to compare with"
       ${BUILD_TESTING})

set(LJP_PATCHES ${PROJECT_SOURCE_DIR}/src/luajit/patches)
set(LJP_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake)
include(ProcessorCount)
ProcessorCount(LJP_JOBS)
if(LJP_JOBS LESS 1)
  set(LJP_JOBS 1)
endif()

# Stops with one line, which CMake does not wrap.
function(ljp_fail text)
  message(NOTICE "ljprof: error: ${text}")
  message(FATAL_ERROR "LuaJIT cannot be prepared, see the line above.")
endfunction()

# Runs one of our scripts; OUT gets its output.
function(ljp_script out)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE text RESULT_VARIABLE code
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "LuaJIT cannot be prepared, see the line above.")
  endif()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# The origin of the base: a package or a folder.
if(LUAJIT_SOURCE_DIR)
  get_filename_component(origin "${LUAJIT_SOURCE_DIR}" ABSOLUTE)
  file(GLOB inputs CONFIGURE_DEPENDS
       ${origin}/src/*.[ch] ${origin}/src/*.dasc ${origin}/src/Makefile
       ${origin}/src/host/*.[ch] ${origin}/src/jit/*.lua ${origin}/dynasm/*)
  # In a tree where somebody has built, generated files are no inputs.
  list(FILTER inputs EXCLUDE REGEX
       "/(lj_(bc|ff|lib|rec|fold)def|buildvm_arch|luajit)\\.h$|/vmdef\\.lua$")
else()
  if(DEFINED ENV{LJPROF_CACHE} AND NOT "$ENV{LJPROF_CACHE}" STREQUAL "")
    set(cache "$ENV{LJPROF_CACHE}")
  else()
    set(cache ${PROJECT_SOURCE_DIR}/.cache)
  endif()
  ljp_script(origin ${LJP_SCRIPTS}/fetch-luajit ${LUAJIT_BASE} ${cache}/sources)
  set(inputs ${LJP_SCRIPTS}/luajit-bases.txt)
endif()

# The patched and the unpatched tree. After a change of a patch, CMake
# configures again.
set(root ${CMAKE_BINARY_DIR}/luajit)
set(LJP_PATCHED_ARCHIVE ${root}/patched/libvm.a)
ljp_script(ignored ${LJP_SCRIPTS}/stage-luajit
           ${origin} ${LJP_PATCHES} ${root}/patched/stage)
if(LJPROF_UNPATCHED)
  ljp_script(ignored ${LJP_SCRIPTS}/stage-luajit
             ${origin} none ${root}/unpatched/stage)
endif()
file(GLOB patches CONFIGURE_DEPENDS ${LJP_PATCHES}/*.patch)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             ${patches} ${LJP_PATCHES}/series ${inputs}
             ${LJP_SCRIPTS}/stage-luajit ${LJP_SCRIPTS}/fetch-luajit
             ${LJP_SCRIPTS}/apply-patch.awk ${LJP_SCRIPTS}/tree-flags)

# Flags that change LuaJIT's headers: its files and ours are compiled with them.
# Debian's for this version come first, then those of the tree's own Makefile.
set(LJP_VM_DEFINES "")
if(NOT LUAJIT_SOURCE_DIR)
  file(STRINGS ${LJP_SCRIPTS}/luajit-bases.txt flags
       REGEX "^${LUAJIT_BASE} flags ")
  string(REGEX REPLACE "^[^ ]* flags " "" flags "${flags}")
  separate_arguments(LJP_VM_DEFINES UNIX_COMMAND "${flags}")
endif()
# CMake splits CC="gcc -m32" into a compiler and its first argument.
set(LJP_CC "${CMAKE_C_COMPILER}${CMAKE_C_COMPILER_ARG1} ${CMAKE_C_FLAGS}")
ljp_script(flags ${LJP_SCRIPTS}/tree-flags ${root}/patched/stage "CC=${LJP_CC}")
separate_arguments(flags UNIX_COMMAND "${flags} ${LUAJIT_XCFLAGS}")
list(APPEND LJP_VM_DEFINES ${flags})
if(CMAKE_BUILD_TYPE STREQUAL Debug)
  list(APPEND LJP_VM_DEFINES -DLUA_USE_ASSERT -DLUA_USE_APICHECK)
endif()
# LuaJIT under sanitizers. Its own allocator hides overflows from ASan, so
# malloc takes its place. LuaJIT breaks three of UBSan's checks by design, so
# they are off: alignment (it writes bytecode and machine code as words), shift
# (it shifts small integers into the sign bit), null (it computes member offsets
# from null, as in obj2gco(NULL)). TSan only sees our code: LuaJIT is
# single-threaded, and its generated code cannot be instrumented.
set(LJP_VM_SANITIZE "")
set(LJP_VM_NO_UBSAN alignment,shift,null)
if(LUAJIT_BASE STREQUAL luajit AND NOT LUAJIT_SOURCE_DIR)
  # This version negates the least signed 64-bit integer to print it.
  string(APPEND LJP_VM_NO_UBSAN ,signed-integer-overflow)
endif()
if(LJPROF_SANITIZE MATCHES "address")
  list(APPEND LJP_VM_DEFINES -DLUAJIT_USE_SYSMALLOC)
  set(LJP_VM_SANITIZE "-fsanitize=address")
  if(LJPROF_SANITIZE MATCHES "undefined")
    string(APPEND LJP_VM_SANITIZE
           " -fsanitize=undefined -fno-sanitize=${LJP_VM_NO_UBSAN}"
           " -fno-sanitize-recover=all")
  endif()
endif()

# LuaJIT's own header tells what the target is.
separate_arguments(cflags UNIX_COMMAND
                   "${CMAKE_C_COMPILER_ARG1} ${CMAKE_C_FLAGS}")
execute_process(
  COMMAND ${CMAKE_C_COMPILER} ${cflags} ${LJP_VM_DEFINES} -E -dM
          ${root}/patched/stage/src/lj_arch.h
  OUTPUT_VARIABLE arch RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  ljp_fail("LuaJIT does not know this target")
endif()
set(LJP_GC64 OFF)
if(arch MATCHES "#define LJ_TARGET_X64 1" AND arch MATCHES "#define LJ_GC64 1")
  set(LJP_GC64 ON)
endif()
if(LJPROF AND NOT LJP_GC64)
  string(REPLACE ";" " " shown "${LJP_VM_DEFINES}")
  ljp_fail("the profilers need an x86-64 target with GC64, and this one is \
not (LuaJIT's flags are '${shown}'): take out -DLUAJIT_DISABLE_GC64, or add \
-DLUAJIT_XCFLAGS=-DLUAJIT_ENABLE_GC64 for a tree that does not turn GC64 on by \
itself; -DLJPROF=OFF builds the library with calls that say so")
endif()
list(APPEND LJP_VM_DEFINES -DLJPROF=$<BOOL:${LJPROF}>)

# Debian's default package.path and package.cpath.
set(prefix_vars PREFIX=/usr)
if(CMAKE_LIBRARY_ARCHITECTURE)
  list(APPEND prefix_vars MULTILIB=lib/${CMAKE_LIBRARY_ARCHITECTURE})
endif()

# ljp_luajit_make(VARIANT DEST): the target luajit_vm_VARIANT, which makes
# libvm.a and luajit.o in build/luajit/VARIANT, and the public headers and jit.*
# modules below DEST.
function(ljp_luajit_make variant dest)
  set(out ${root}/${variant})
  string(REPLACE ";" " " xcflags "${LJP_VM_DEFINES}")
  add_custom_command(
    OUTPUT ${out}/libvm.a ${out}/luajit.o
    BYPRODUCTS ${dest}/include/lua.h ${dest}/share/luajit-2.1/jit/vmdef.lua
    COMMAND ${LJP_SCRIPTS}/make-luajit ${out}/stage ${out}/work ${out} ${dest}
            ${LJP_JOBS} "CC=${LJP_CC}" CCDEBUG=-g
            "XCFLAGS=${xcflags}" "TARGET_CFLAGS=${LJP_VM_SANITIZE}"
            ${prefix_vars}
    DEPENDS ${out}/stage/.ljprof-stamp ${LJP_SCRIPTS}/make-luajit
    COMMENT "Building LuaJIT (${variant})" VERBATIM)
  add_custom_target(luajit_vm_${variant} DEPENDS ${out}/libvm.a ${out}/luajit.o)
endfunction()

# ljp_luajit_link(VARIANT LIBRARY COMMAND DEST OBJECTS...): two targets, the
# shared library of a variant (with our objects) and the command luajit.
function(ljp_luajit_link variant library command dest)
  set(out ${root}/${variant})
  file(CONFIGURE OUTPUT ${out}/empty.c CONTENT "/* Empty. */\n")
  add_library(${library} SHARED ${out}/empty.c)
  add_dependencies(${library} luajit_vm_${variant})
  set_target_properties(${library} PROPERTIES
    OUTPUT_NAME luajit-5.1 VERSION 2.1.0 SOVERSION 2
    LIBRARY_OUTPUT_DIRECTORY ${dest}/lib LINK_DEPENDS ${out}/libvm.a)
  target_link_options(${library} PRIVATE
    -Wl,--whole-archive ${out}/libvm.a -Wl,--no-whole-archive)
  target_link_libraries(${library} PRIVATE ljp_flags ${ARGN} m dl)

  # The command is linked with the library in ../lib beside it, and finds its
  # jit.* modules relative to itself; see src/luajit/command.c.
  add_executable(${command} ${PROJECT_SOURCE_DIR}/src/luajit/command.c)
  add_dependencies(${command} luajit_vm_${variant})
  set_target_properties(${command} PROPERTIES
    OUTPUT_NAME luajit RUNTIME_OUTPUT_DIRECTORY ${dest}/bin
    BUILD_RPATH_USE_ORIGIN ON INSTALL_RPATH "$ORIGIN/../lib"
    LINK_DEPENDS ${out}/luajit.o)
  target_include_directories(${command} SYSTEM PRIVATE ${dest}/include)
  target_link_options(${command} PRIVATE ${out}/luajit.o
                      -Wl,--wrap=luaL_openlibs)
  target_link_libraries(${command} PRIVATE ljp_flags ${library})
endfunction()

# ljp_luajit_archive(FILE PARTS...): the static library FILE, with LuaJIT's
# objects and those of our object and static libraries.
function(ljp_luajit_archive file)
  set(members ${LJP_PATCHED_ARCHIVE})
  foreach(part ${ARGN})
    get_target_property(type ${part} TYPE)
    if(type STREQUAL OBJECT_LIBRARY)
      list(APPEND members $<TARGET_OBJECTS:${part}>)
    else()
      list(APPEND members $<TARGET_FILE:${part}>)
    endif()
  endforeach()
  add_custom_command(
    OUTPUT ${file}
    COMMAND ${LJP_SCRIPTS}/merge-archives ${file} ${members}
    DEPENDS ${members} ${ARGN} ${LJP_SCRIPTS}/merge-archives
    COMMENT "Merging the static library" COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(libluajit_static ALL DEPENDS ${file})
endfunction()

# ljp_see_luajit(TARGET [INTERNALS]): lets TARGET's files include lua.h and its
# like, with INTERNALS also lj_*.h. They are compiled after LuaJIT has been
# built, and again after it has been rebuilt.
function(ljp_see_luajit target)
  get_target_property(sources ${target} SOURCES)
  set_source_files_properties(${sources} PROPERTIES
    OBJECT_DEPENDS ${root}/patched/libvm.a)
  add_dependencies(${target} luajit_vm_patched)
  target_include_directories(${target} SYSTEM PRIVATE
                             ${CMAKE_BINARY_DIR}/include)
  if("INTERNALS" IN_LIST ARGN)
    target_include_directories(${target} SYSTEM PRIVATE
                               ${root}/patched/work/src)
    target_compile_options(${target} PRIVATE ${LJP_VM_DEFINES})
  endif()
endfunction()
