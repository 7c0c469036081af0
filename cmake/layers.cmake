# Folders of src/ from the lowest to the highest. A folder may use only folders before it, and only those it names;
# the includes of every file are checked at configure time, so that an upward dependency does not build.
set(OSB_LAYERS base sandbox json sys io tls http store image api registry launcher calls runtime docker egress testkit execd interpreter server cli main)

function(_osb_check_includes module uses test_uses files)
  foreach(file IN LISTS files)
    if(NOT file MATCHES "\\.(cc|h)$")
      continue()
    endif()
    set(allowed ${uses})
    if(file MATCHES "(_test\\.cc|/test_[a-z_]+\\.h|/fake_[a-z_]+\\.h|_fixture\\.h)$")
      list(APPEND allowed ${test_uses})
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(STRINGS ${file} includes REGEX "^#include \"[a-z_]+/")
    foreach(line IN LISTS includes)
      string(REGEX REPLACE "^#include \"([a-z_]+)/.*" "\\1" folder "${line}")
      if(folder IN_LIST OSB_LAYERS AND NOT folder STREQUAL module AND NOT folder IN_LIST allowed)
        message(FATAL_ERROR "layers: ${file} includes ${folder}/, but '${module}' does not name '${folder}' in its USES "
          "(cmake/layers.cmake gives the order of the layers)")
      endif()
    endforeach()
  endforeach()
endfunction()

# osb_module(NAME [USES folder...] [LIBS library...] [SMALL | SMALL_ONLY] [SMALL_LIBS library...] [TEST_USES folder...] [PCH])
#
# Makes a static library osb_NAME from src/NAME/**.cc without the _test.cc files, and a unit test executable
# NAME_test from those. SMALL makes a second library osb_NAME_small, compiled for size, for the static executables.
# With SMALL_ONLY there is no other (except under sanitizers, which have no static executables): the host has no use for
# it, and the unit tests try what is shipped.
function(osb_module name)
  cmake_parse_arguments(M "SMALL;SMALL_ONLY;PCH" "" "USES;LIBS;SMALL_LIBS;TEST_LIBS;TEST_USES" ${ARGN})
  list(FIND OSB_LAYERS ${name} own)
  foreach(use IN LISTS M_USES)
    list(FIND OSB_LAYERS ${use} other)
    if(other LESS 0 OR NOT other LESS own)
      message(FATAL_ERROR "layers: '${name}' may not use '${use}': it is not a lower layer")
    endif()
  endforeach()

  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc ${CMAKE_SOURCE_DIR}/src/${name}/*.h
    ${CMAKE_SOURCE_DIR}/src/${name}/*.S)
  _osb_check_includes(${name} "${M_USES}" "${M_TEST_USES}" "${files}")
  set(sources ${files})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  set(tests ${files})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  set(header osb_pch_plain)
  set(small_header osb_pch_plain_small)
  if(M_PCH)
    set(header osb_pch_host)
    set(small_header osb_pch_small)
  endif()
  set(test_header ${header}_test)
  if(M_SMALL_ONLY AND NOT OSB_SANITIZE)
    set(test_header osb_pch_small_test)
  else()
    set(host_uses ${M_USES})
    list(TRANSFORM host_uses PREPEND osb_)
    add_library(osb_${name} STATIC ${sources})
    target_link_libraries(osb_${name} PUBLIC osb_flags_host ${host_uses} ${M_LIBS})
    target_precompile_headers(osb_${name} REUSE_FROM ${header})
  endif()
  if((M_SMALL OR M_SMALL_ONLY) AND NOT OSB_SANITIZE)
    set(small_uses ${M_USES})
    list(TRANSFORM small_uses PREPEND osb_)
    list(TRANSFORM small_uses APPEND _small)
    add_library(osb_${name}_small STATIC ${sources})
    target_link_libraries(osb_${name}_small PUBLIC osb_flags_small ${small_uses} ${M_SMALL_LIBS})
    target_precompile_headers(osb_${name}_small REUSE_FROM ${small_header})
    if(M_SMALL_ONLY)
      add_library(osb_${name} ALIAS osb_${name}_small)
    endif()
  endif()

  if(OSB_TESTS AND tests)
    add_executable(${name}_test ${tests})
    set(test_uses ${M_TEST_USES})
    list(TRANSFORM test_uses PREPEND osb_)
    target_link_libraries(${name}_test PRIVATE osb_${name} ${test_uses} ${M_TEST_LIBS} GTest::gmock_main
      osb_flags_test)
    target_precompile_headers(${name}_test REUSE_FROM ${test_header})
    target_compile_options(${name}_test PRIVATE -fPIC)  # as the header was compiled; executables get -fPIE
    gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 60)
  endif()
endfunction()

# osb_static_executable(NAME sources... LIBS small libraries...): fully static, small, no unused sections, functions that are the same once
# unless somebody compares their addresses.
function(osb_static_executable name)
  cmake_parse_arguments(E "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${E_SOURCES})
  target_link_libraries(${name} PRIVATE ${E_LIBS} osb_flags_small)
  target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src/main/static_unwind.cc)
  target_link_options(${name} PRIVATE -static -Wl,--gc-sections -Wl,--icf=safe -Wl,--wrap=__register_frame_info
    -Wl,--wrap=__deregister_frame_info)
  add_custom_command(TARGET ${name} POST_BUILD COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:${name}> $<TARGET_FILE:${name}>.debug
    COMMAND llvm-strip-19 $<TARGET_FILE:${name}> VERBATIM)
endfunction()
