# SPDX-License-Identifier: Apache-2.0
# Other builds of Python (versions/pythons.txt): ctest -C Pythons -L Pythons
# What is run: unit tests of live processes and end-to-end tests, with that interpreter.
set(VERSIONS ${CMAKE_CURRENT_SOURCE_DIR}/versions)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${VERSIONS}/pythons.txt)
file(STRINGS ${VERSIONS}/pythons.txt PYTHON_LINES REGEX "^[a-z]")
set(PYTHON_UNIT_TESTS test_python_frames test_python_live test_python_steps)
file(GLOB PYTHON_E2E_TESTS CONFIGURE_DEPENDS e2e/test_python*.py)
# Numbers of threads, without which they have no names, names of tasks, and code.replace() are in Python from 3.8 on; where the GIL is, in 3.7.
set(PYTHON_3.8_TESTS test_python_threads test_python_thread_names test_python_hostile test_python_tasks)
set(PYTHON_3.7_TESTS test_python_gil)
# asyncio reports who awaits a task from 3.14 on.
set(PYTHON_3.14_TESTS test_python_awaiters)

# A program that loads libpython; a preset's own flags are not used.
set(EMBEDDED ${CMAKE_BINARY_DIR}/fixtures/embedded)
add_custom_command(OUTPUT ${EMBEDDED}
	COMMAND ${CMAKE_C_COMPILER} -O2 -g -o ${EMBEDDED} ${CMAKE_SOURCE_DIR}/fixtures/python/embedded.c
	DEPENDS ${CMAKE_SOURCE_DIR}/fixtures/python/embedded.c VERBATIM)
add_custom_target(python_embedded ALL DEPENDS ${EMBEDDED})

function(add_python_test python name)
	add_test(NAME pythons.${python}.${name} COMMAND Python3::Interpreter ${VERSIONS}/python_version.py ${python} ${ARGN}
		CONFIGURATIONS Pythons)
	set_tests_properties(pythons.${python}.${name} PROPERTIES LABELS Pythons ENVIRONMENT "${TEST_ENVIRONMENT}"
		TIMEOUT 1800 SKIP_RETURN_CODE 77 RUN_SERIAL ON) # the first test of a row builds or downloads it
endfunction()

foreach(line ${PYTHON_LINES})
	string(REGEX MATCH "^([^ ]+) +([^ ]+)" _ "${line}")
	set(python ${CMAKE_MATCH_1})
	set(version ${CMAKE_MATCH_2})
	set(unit ${PYTHON_UNIT_TESTS})
	if(version VERSION_GREATER_EQUAL 3.8)
		list(APPEND unit test_python_threads)
	endif()
	foreach(name ${unit})
		if(name MATCHES "^test_python_(live|steps)$" AND line MATCHES " go ")
			continue() # clang's unwind information is wrong at single instructions: runtimes/python/README.md, Limits
		endif()
		add_python_test(${python} ${name} $<TARGET_FILE:${name}>)
	endforeach()
	if(version VERSION_GREATER_EQUAL 3.8 AND version VERSION_LESS 3.15 AND NOT line MATCHES "--disable-gil|PYTHON_JIT=1")
		add_python_test(${python} test_functions ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/e2e/test_functions.py)
	endif()
	foreach(source ${PYTHON_E2E_TESTS})
		get_filename_component(name ${source} NAME_WE)
		if((name IN_LIST PYTHON_3.8_TESTS AND version VERSION_LESS 3.8) OR (name IN_LIST PYTHON_3.7_TESTS AND version VERSION_LESS 3.7) OR
				(name IN_LIST PYTHON_3.14_TESTS AND version VERSION_LESS 3.14))
			continue()
		endif()
		if(line MATCHES "PYTHON_JIT=1")
			continue() # not complete to 99.9 %: runtimes/python/README.md, Limits
		endif()
		if(line MATCHES "PYTHONPERFSUPPORT" AND name MATCHES "hostile")
			continue() # 3.13 can not write such names itself
		endif()
		if(name STREQUAL test_python_gil AND line MATCHES "--disable-gil")
			continue() # refused in words
		endif()
		add_python_test(${python} ${name} ${Python3_EXECUTABLE} ${source})
	endforeach()
endforeach()
