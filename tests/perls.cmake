# SPDX-License-Identifier: Apache-2.0
# Other builds of Perl (versions/perls.txt): ctest -C Perls -L Perls
set(VERSIONS ${CMAKE_CURRENT_SOURCE_DIR}/versions)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${VERSIONS}/perls.txt)
file(STRINGS ${VERSIONS}/perls.txt PERL_LINES REGEX "^[0-9a-z]")
file(GLOB PERL_E2E_TESTS CONFIGURE_DEPENDS e2e/test_perl*.py e2e/test_functions_perl.py)
foreach(line ${PERL_LINES})
	string(REGEX MATCH "^[^ ]+" perl "${line}")
	foreach(source ${PERL_E2E_TESTS})
		get_filename_component(name ${source} NAME_WE)
		if(name STREQUAL test_functions_perl AND perl MATCHES "-plain")
			continue() # docs/limits.md, Probes
		endif()
		add_test(NAME perls.${perl}.${name} COMMAND Python3::Interpreter ${VERSIONS}/perl_version.py ${perl} ${Python3_EXECUTABLE} ${source}
			CONFIGURATIONS Perls)
		set_tests_properties(perls.${perl}.${name} PROPERTIES LABELS Perls ENVIRONMENT "${TEST_ENVIRONMENT}"
			TIMEOUT 1800 SKIP_RETURN_CODE 77 RUN_SERIAL ON) # the first test of a row builds or downloads it
	endforeach()
endforeach()
