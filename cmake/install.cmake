# cmake --install build/release --prefix DIR: the executable under its two names, the unit, documents.
# Static ones that it carries are not installed for themselves.

include(GNUInstallDirs)
if(NOT OSB_SANITIZE)
  install(TARGETS osb RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(CODE "execute_process(COMMAND \${CMAKE_COMMAND} -E create_symlink osb
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/opensandbox-server\")")
endif()
install(FILES packaging/opensandbox.service DESTINATION lib/systemd/system)
install(FILES README.md CHANGELOG.md SPECIFICATION.md SECURITY.md LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/opensandbox)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/opensandbox)
