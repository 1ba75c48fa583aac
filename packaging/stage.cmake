# CPack's step "install", once for each kind of package: runs packaging/stage. The
# path of the temporary folder names the kind.
string(REGEX MATCH "/(DEB|RPM)/" kind "${CMAKE_CURRENT_BINARY_DIR}/")
execute_process(
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/stage "${kind}" ${CPACK_LJPROF_BUILD_DIR}
    ${CMAKE_CURRENT_BINARY_DIR}
  RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "packaging/stage failed, see the lines above.")
endif()
