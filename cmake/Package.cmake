# The packages .deb and .rpm, made by CPack (./run package). packaging/stage lays
# out their files.
set(LJPROF_MAINTAINER "The ljprof authors <ljprof@example.org>" CACHE STRING
    "Who is named as the maintainer of packages")
set(packaging ${PROJECT_SOURCE_DIR}/packaging)
file(READ ${packaging}/debian/description description)

set(CPACK_GENERATOR DEB RPM)
set(CPACK_PACKAGE_NAME ljprof)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR "The ljprof authors")
set(CPACK_PACKAGE_CONTACT "${LJPROF_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION "${description}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "profiler for programs that use LuaJIT")
set(CPACK_INSTALL_CMAKE_PROJECTS "")
set(CPACK_INSTALL_SCRIPTS ${packaging}/stage.cmake)
set(CPACK_LJPROF_BUILD_DIR ${CMAKE_BINARY_DIR})
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The command luajit needs the library in the package, not Debian's.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib)
# For names of C++, and to verify the servers of `ljprof push`.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libstdc++6, ca-certificates")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS libdebuginfod1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_RELEASE 1)
set(CPACK_RPM_PACKAGE_LICENSE MIT)
set(CPACK_RPM_PACKAGE_GROUP Development/Tools)
set(CPACK_RPM_PACKAGE_RELOCATABLE OFF)
set(CPACK_RPM_PACKAGE_SUMMARY "Profiler for programs that use LuaJIT")
set(CPACK_RPM_PACKAGE_DESCRIPTION "${description}")
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
  /usr/lib64/pkgconfig /usr/share/licenses /usr/share/man /usr/share/man/man1)
# What comes with the package is not offered to others, and not asked of them.
# The times and the host of the build would differ from build to build.
set(CPACK_RPM_SPEC_MORE_DEFINE "
%global __provides_exclude_from ^/usr/lib64/ljprof/.*$
%global __requires_exclude ^(libluajit-5|/usr/bin/pkg-config).*$
%global _buildhost ljprof
%global use_source_date_epoch_as_buildtime 1
%global clamp_mtime_to_source_date_epoch 1
%global _build_id_links none
%global __os_install_post %{nil}
")
include(CPack)
