# SPDX-License-Identifier: Apache-2.0
# Fixtures: fixtures/native/variants.txt has a line "name source flags…" for each. The preset's own flags are not used.
set(FIXTURES ${CMAKE_SOURCE_DIR}/fixtures/native)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${FIXTURES}/variants.txt)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/fixtures)
file(STRINGS ${FIXTURES}/variants.txt VARIANTS REGEX "^[a-z]")
set(FIXTURE_BINARIES)
foreach(line ${VARIANTS})
	string(REPLACE "\t" " " line "${line}")
	separate_arguments(words UNIX_COMMAND "${line}")
	list(POP_FRONT words name source)
	set(compiler ${CMAKE_C_COMPILER})
	if(source MATCHES "\\.cc$")
		set(compiler ${CMAKE_CXX_COMPILER})
	endif()
	set(binary ${CMAKE_BINARY_DIR}/fixtures/${name})
	add_custom_command(OUTPUT ${binary}
		COMMAND ${compiler} -O2 -g -fomit-frame-pointer -o ${binary} ${FIXTURES}/${source} ${words}
		DEPENDS ${FIXTURES}/${source} ${FIXTURES}/truth.h VERBATIM)
	list(APPEND FIXTURE_BINARIES ${binary})
endforeach()
add_custom_target(fixtures ALL DEPENDS ${FIXTURE_BINARIES})

# They measure, on CPUs that they share, so one at a time. But for those whose truth is in what they read and write, not
# in times or shares of the machine: these run beside each other and the unit tests, and begin first.
set(BESIDE_OTHERS test_symbolize test_watch test_verifier test_page test_page_profiles test_page_odd test_core test_dump
	test_dump_java test_formats test_push test_push_refused test_recording test_capabilities test_manual test_diff test_inspect
	test_lua_inspect test_layout test_bad_input test_debuginfod test_first_hour test_go_heap test_go_goroutines
	test_inlines test_lua_tasks test_perl_hostile test_processes test_python_hostile test_python_tasks
	test_python_thread_names test_source test_containers test_sanitized test_perf_map
	test_first_hour_document test_job test_go test_options test_java_alloc_sites test_java_attach test_java_callers
	test_java_split test_java_virtual)
file(GLOB E2E_TESTS CONFIGURE_DEPENDS e2e/test_*.py)
foreach(source ${E2E_TESTS})
	get_filename_component(name ${source} NAME_WE)
	add_test(NAME e2e.${name} COMMAND Python3::Interpreter ${source})
	set_tests_properties(e2e.${name} PROPERTIES LABELS e2e ENVIRONMENT "${TEST_ENVIRONMENT}" TIMEOUT 900
		SKIP_RETURN_CODE 77 FIXTURES_REQUIRED attempts)
	if(name IN_LIST BESIDE_OTHERS)
		set_tests_properties(e2e.${name} PROPERTIES COST 100)
	else()
		set_tests_properties(e2e.${name} PROPERTIES RUN_SERIAL ON)
	endif()
endforeach()
# Before all of them and behind them: how many passed only at their second attempt?
add_test(NAME e2e.attempts_begin COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/flaky.py begin)
add_test(NAME e2e.attempts COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/flaky.py end)
set_tests_properties(e2e.attempts_begin e2e.attempts PROPERTIES LABELS e2e ENVIRONMENT "${TEST_ENVIRONMENT}")
set_tests_properties(e2e.attempts_begin PROPERTIES FIXTURES_SETUP attempts)
set_tests_properties(e2e.attempts PROPERTIES FIXTURES_CLEANUP attempts)

file(GLOB BENCHES CONFIGURE_DEPENDS bench/bench_*.c)
foreach(source ${BENCHES})
	get_filename_component(name ${source} NAME_WE)
	add_executable(${name} ${source})
	target_link_libraries(${name} yrt_format yrt_core PkgConfig::CMOCKA)
	target_compile_definitions(${name} PRIVATE LUA_HOST="${LUA_HOST}")
	add_dependencies(${name} lua_host)
	add_test(NAME bench.${name} COMMAND ${name} CONFIGURATIONS Bench)
	set_tests_properties(bench.${name} PROPERTIES LABELS bench ENVIRONMENT "${TEST_ENVIRONMENT}" RUN_SERIAL ON)
endforeach()
file(GLOB BENCHES CONFIGURE_DEPENDS bench/bench_*.py)
foreach(source ${BENCHES})
	get_filename_component(name ${source} NAME_WE)
	add_test(NAME bench.${name} COMMAND Python3::Interpreter ${source} CONFIGURATIONS Bench)
	set_tests_properties(bench.${name} PROPERTIES LABELS bench ENVIRONMENT "${TEST_ENVIRONMENT}" RUN_SERIAL ON TIMEOUT 3600
		SKIP_RETURN_CODE 77)
endforeach()

# Other kernels in qemu, some minutes each: ctest -C Kernels -L kernels
add_test(NAME kernels.run COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/kernels/run.py CONFIGURATIONS Kernels)
set_tests_properties(kernels.run PROPERTIES LABELS kernels ENVIRONMENT "${TEST_ENVIRONMENT}" RUN_SERIAL ON TIMEOUT 9000)
