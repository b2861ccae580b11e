# SPDX-License-Identifier: Apache-2.0
# Other releases of Go (versions/gos.txt), from the Go module proxy into the build directory: ctest -C Versions -L Gos
set(GOS ${CMAKE_CURRENT_SOURCE_DIR}/versions)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${GOS}/gos.txt)
file(STRINGS ${GOS}/gos.txt GO_VERSIONS REGEX "^[0-9]")
foreach(version ${GO_VERSIONS})
	set(GO_TESTS go go_storms go_goroutines go_heap go_refs go_labels)
	foreach(test ${GO_TESTS})
		add_test(NAME gos.${version}.${test} COMMAND Python3::Interpreter ${GOS}/go_version.py ${version}
			${CMAKE_CURRENT_SOURCE_DIR}/e2e/test_${test}.py CONFIGURATIONS Versions)
		set_tests_properties(gos.${version}.${test} PROPERTIES LABELS Gos ENVIRONMENT "${TEST_ENVIRONMENT}" TIMEOUT 1800 SKIP_RETURN_CODE 77
			RUN_SERIAL ON) # the first build of a release compiles its library
	endforeach()
endforeach()
