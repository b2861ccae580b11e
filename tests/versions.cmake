# SPDX-License-Identifier: Apache-2.0
# Other builds of LuaJIT (versions/versions.txt), unpacked from Debian's suites into the build directory: ctest -C Versions -L Versions
# What is run: unit tests of live processes and end-to-end tests, with the host of that build, and programs of that suite.
set(VERSIONS ${CMAKE_CURRENT_SOURCE_DIR}/versions)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${VERSIONS}/versions.txt)
file(STRINGS ${VERSIONS}/versions.txt VERSION_LINES REGEX "^[a-z]")
set(VERSION_UNIT_TESTS test_luajit_check test_luajit_layout test_luajit_live test_luajit_frames test_luajit_traces)
file(GLOB VERSION_PYTHON_TESTS CONFIGURE_DEPENDS e2e/test_lua*.py versions/test_*.py)

function(add_version_test version name)
	add_test(NAME versions.${version}.${name} COMMAND Python3::Interpreter ${VERSIONS}/version.py ${version} ${ARGN}
		CONFIGURATIONS Versions)
	set_tests_properties(versions.${version}.${name} PROPERTIES LABELS Versions ENVIRONMENT "${TEST_ENVIRONMENT}"
		TIMEOUT 900 SKIP_RETURN_CODE 77 RUN_SERIAL ON)
endfunction()

foreach(line ${VERSION_LINES})
	string(REGEX MATCH "^[^ ]+" version "${line}")
	foreach(name ${VERSION_UNIT_TESTS})
		add_version_test(${version} ${name} $<TARGET_FILE:${name}>)
	endforeach()
	foreach(source ${VERSION_PYTHON_TESTS})
		get_filename_component(name ${source} NAME_WE)
		if(name STREQUAL test_programs AND NOT line MATCHES " shared ")
			continue() # the suite's programs have the shared library
		endif()
		add_version_test(${version} ${name} ${Python3_EXECUTABLE} ${source})
	endforeach()
endforeach()

add_test(NAME versions.lupa COMMAND Python3::Interpreter ${VERSIONS}/lupa_package.py CONFIGURATIONS Versions)
set_tests_properties(versions.lupa PROPERTIES LABELS Versions ENVIRONMENT "${TEST_ENVIRONMENT}" TIMEOUT 300 SKIP_RETURN_CODE 77
	RUN_SERIAL ON)
