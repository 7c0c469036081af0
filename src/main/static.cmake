# osb-static: one executable that needs no library and no loader, for the wheel, the tarball and the image. Only a build
# of packages makes it. Decision 53 has the reasons.

add_executable(osb-static EXCLUDE_FROM_ALL main/osb.cc main/static_libraries.cc main/static_formatting.cc
  main/static_names.cc)
set_target_properties(osb-static PROPERTIES OSB_STATIC ON)
foreach(carried launcher execd egress probe)
  set(program ${carried})
  if(NOT TARGET ${program})
    set(program osb-${carried})
  endif()
  osb_embed(osb-static osb_${carried}_bytes ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${program})
  add_dependencies(osb-static ${program})
endforeach()
target_link_libraries(osb-static PRIVATE osb_cli archive ssl crypto lzma zstd z)
osb_server_first(osb-static)
target_link_options(osb-static PRIVATE -static-pie -Wl,--wrap=dlopen -Wl,--wrap=dlsym
  -Wl,--wrap=dlclose -Wl,--wrap=dlerror)
