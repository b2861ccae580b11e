# SPDX-License-Identifier: Apache-2.0
# A Debian package in build/release/package: cmake --preset release -DYRT_TESTS=OFF -DYRT_MAINTAINER='NAME <ADDRESS>' && cmake --build
# --preset release --target package. lintian complains of nothing but the address, if none is given. include() this last.
set(CPACK_PACKAGE_NAME yrt)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/package)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "sampling profiler that knows language runtimes")
set(CPACK_PACKAGE_DESCRIPTION "It shows in one flame graph where the time, memory and waiting of a running
process go: from the kernel through native code and the language VM up to
the line of Lua, Python, Java, Go or Perl that caused it. Stacks are walked
inside the kernel by BPF; the target is neither changed nor stopped.")
set(YRT_MAINTAINER "yrt maintainers <root@localhost.localdomain>" CACHE STRING "Of the Debian package")
set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
	OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${YRT_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/package_needs.cmake)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS libcurl4)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS libdebuginfod1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# What Debian's policy wants in a package: man pages and the changelog packed, without a time in them, and the copyright.
set(package_documents ${CMAKE_BINARY_DIR}/package-documents)
add_custom_command(OUTPUT ${package_documents}.stamp
	COMMAND sh ${CMAKE_SOURCE_DIR}/cmake/package.sh ${CMAKE_BINARY_DIR}/manual ${package_documents}
		${PROJECT_VERSION} "${YRT_MAINTAINER}"
	COMMAND ${CMAKE_COMMAND} -E touch ${package_documents}.stamp
	DEPENDS ${CMAKE_BINARY_DIR}/manual.stamp ${CMAKE_SOURCE_DIR}/cmake/package.sh VERBATIM)
add_custom_target(package_documents ALL DEPENDS ${package_documents}.stamp)
install(DIRECTORY ${package_documents}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(DIRECTORY ${package_documents}/doc/ DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/yrt)
install(FILES ${CMAKE_SOURCE_DIR}/cmake/lintian-overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
	RENAME yrt)

# What the tarball takes along: libisal, of which Debian has no archive.
if(YRT_STATIC)
	set_target_properties(yrt PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
	install(CODE [[
		file(GET_RUNTIME_DEPENDENCIES EXECUTABLES "$<TARGET_FILE:yrt>" RESOLVED_DEPENDENCIES_VAR libraries
			PRE_INCLUDE_REGEXES "^libisal" PRE_EXCLUDE_REGEXES ".*")
		file(INSTALL ${libraries} DESTINATION "${CMAKE_INSTALL_PREFIX}/lib" FOLLOW_SYMLINK_CHAIN)
	]])
endif()
include(CPack)
