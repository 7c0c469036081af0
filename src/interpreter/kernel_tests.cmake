# Each kernel alone, driven over a socketpair. One whose interpreter is not installed is skipped, and says so.
find_program(OSB_PYTHON python3)
if(OSB_TESTS AND OSB_PYTHON)
  file(GLOB kernel_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_kernel_test.py)
  foreach(file IN LISTS kernel_tests)
    get_filename_component(name ${file} NAME_WE)
    if(name STREQUAL "python_kernel_test")
      continue()  # has a driver and an entry of its own
    endif()
    add_test(NAME ${name} COMMAND ${OSB_PYTHON} -B ${file})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300)
  endforeach()
endif()
