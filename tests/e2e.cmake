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

# A module may have tests of both tiers (docs/testing.md): @yrt.measured marks those that belong to the measurements. The
# gate runs beside others; measurements share the CPUs with nobody, and are asked for: ctest -C Measured -L measured.
file(GLOB E2E_TESTS CONFIGURE_DEPENDS e2e/test_*.py)
foreach(source ${E2E_TESTS})
	get_filename_component(name ${source} NAME_WE)
	string(REPLACE test_ "" short ${name})
	set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
	file(STRINGS ${source} tests REGEX "^def test_")
	file(STRINGS ${source} measured REGEX "^@yrt\\.measured|yrt\\.measured\\(")
	file(STRINGS ${source} both REGEX "^@yrt\\.both_tiers")
	list(LENGTH tests ntests)
	list(LENGTH measured nmeasured)
	if(ntests GREATER nmeasured)
		add_test(NAME e2e.${name} COMMAND Python3::Interpreter ${source})
		set_tests_properties(e2e.${name} PROPERTIES LABELS e2e ENVIRONMENT "${TEST_ENVIRONMENT};YRT_TIER=gate" TIMEOUT 1200
			SKIP_RETURN_CODE 77)
		if(short MATCHES "^(ylang_library|core|report|watch|latency|sanitized|verifier|ylang|first_hour_document)$")
			set_tests_properties(e2e.${name} PROPERTIES COST 100) # the longest begin first
		endif()
	endif()
	if(nmeasured OR both)
		add_test(NAME measured.${short} COMMAND Python3::Interpreter ${source} CONFIGURATIONS Measured)
		set_tests_properties(measured.${short} PROPERTIES LABELS measured ENVIRONMENT "${TEST_ENVIRONMENT};YRT_TIER=measured"
			TIMEOUT 3600 SKIP_RETURN_CODE 77 RUN_SERIAL ON)
	endif()
endforeach()

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
