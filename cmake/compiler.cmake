# Compiler, flags and caching for the whole project.

if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)
  message(FATAL_ERROR "OpenSandbox is built with clang 19 or newer (found ${CMAKE_CXX_COMPILER_ID} "
    "${CMAKE_CXX_COMPILER_VERSION}). On Debian 12: apt-get install clang-19 lld-19, then use the presets: cmake --preset dev")
endif()

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS ON)  # TRY() is a statement expression
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# The launcher is set before anything is compiled. Without the sloppiness setting nothing that uses a precompiled
# header is ever a cache hit; with paths taken relative to the source tree, another clone of it shares the cache.
# What is not in the cache is not preprocessed for itself before it is compiled.
find_program(OSB_CCACHE ccache)
if(OSB_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
    CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
    CCACHE_IGNOREOPTIONS=-isysroot* ${OSB_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  # CMake hands the paths of precompiled headers over behind -Xclang, where ccache takes them for words, and clang writes whole
  # paths into them: then no other clone would ever have a hit. So they are plain options, below a "system root" that is this
  # tree (which on Linux decides nothing else) and is not part of the key, and src/CMakeLists.txt names headers in quotes.
  # The extension is not clang's own: with that a plain -include would take the last precompiled header to make the next one.
  set(CMAKE_PCH_EXTENSION .precompiled)
  file(GLOB old_precompiled ${CMAKE_BINARY_DIR}/src/CMakeFiles/*/cmake_pch.hxx.pch)  # of a build directory from before
  if(old_precompiled)
    file(REMOVE ${old_precompiled})
  endif()
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -isysroot${CMAKE_SOURCE_DIR} -include-pch <PCH_FILE>)
  set(CMAKE_CXX_COMPILE_OPTIONS_CREATE_PCH -isysroot${CMAKE_SOURCE_DIR} -Xclang -relocatable-pch -Xclang -emit-pch
    -include <PCH_HEADER> -x c++-header)
endif()

set(OSB_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize=")

add_compile_options(-Wall -Wextra -Werror=unused-result -Werror=return-type -Werror=thread-safety -Wno-gnu-statement-expression
  -fstack-protector-strong -ftrivial-auto-var-init=zero -g1)
add_compile_definitions(_GLIBCXX_ASSERTIONS)
add_link_options(-fuse-ld=lld)
if(OSB_SANITIZE)
  add_compile_options(-fsanitize=${OSB_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=${OSB_SANITIZE})
endif()
if(OSB_FUZZ)  # every library counts its edges, so that the fuzz targets see into them
  if(NOT OSB_SANITIZE)
    message(FATAL_ERROR "OSB_FUZZ needs a sanitizer to notice anything; use the preset: cmake --preset asan")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_options(-D_FORTIFY_SOURCE=2)
endif()
# A debug build is for debugging our code, not for waiting on Boost's.
set(CMAKE_CXX_FLAGS_DEBUG "-O1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_DEBUG "-O1")
set(CMAKE_C_FLAGS_RELEASE "-O2")

# Coroutine lifetimes: some compilers end a temporary of a co_await expression too early, or reject the braced call.
# The program checks both; a compiler that fails it would corrupt memory in silence.
if(NOT OSB_COROUTINES_OK)
  try_run(OSB_CORO_RUN OSB_CORO_COMPILES ${CMAKE_BINARY_DIR}/coroutine_check
    SOURCES ${CMAKE_SOURCE_DIR}/cmake/coroutine_lifetime.cc
    CXX_STANDARD 23 CXX_STANDARD_REQUIRED ON
    COMPILE_OUTPUT_VARIABLE OSB_CORO_COMPILE_LOG RUN_OUTPUT_VARIABLE OSB_CORO_LOG)
  if(NOT OSB_CORO_COMPILES OR NOT OSB_CORO_RUN EQUAL 0)
    message(FATAL_ERROR "${CMAKE_CXX_COMPILER} does not handle coroutine lifetimes correctly; install clang 19 "
      "(apt-get install clang-19 lld-19) and configure with a preset, for example: cmake --preset dev\n"
      "${OSB_CORO_COMPILE_LOG}\n${OSB_CORO_LOG}")
  endif()
  set(OSB_COROUTINES_OK ON CACHE INTERNAL "this compiler passed cmake/coroutine_lifetime.cc")
endif()
