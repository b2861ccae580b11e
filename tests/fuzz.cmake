# SPDX-License-Identifier: Apache-2.0
# Fuzz targets, linked with the sanitized tree's libraries, which clang instruments. In the gate each runs for so many
# inputs, always from one seed: what fails there can be had again. To look for what is new:
# -DYRT_FUZZ_SEED=0 -DYRT_FUZZ_RUNS=-1 -DYRT_FUZZ_SECONDS=120.
set(YRT_FUZZ_RUNS 500 CACHE STRING "Inputs that each fuzzer runs in the tests; -1: as many as there is time for")
set(YRT_FUZZ_SECONDS 2 CACHE STRING "Seconds that each fuzzer runs in the tests, at most")
set(YRT_FUZZ_SEED 1 CACHE STRING "Seed of the fuzzers; 0: another in each run")
math(EXPR FUZZ_TIMEOUT "${YRT_FUZZ_SECONDS} + 1200")
# Seeds of those that read whole ELF files, which their first byte says: two units each, of two compilers.
set(WHOLE_FILE_FUZZERS fuzz_cfi fuzz_dwarf fuzz_symbols)
set(SEEDS)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
foreach(compiler clang gcc)
	set(seed ${CMAKE_BINARY_DIR}/fuzz/seed-${compiler})
	set(units ${CMAKE_SOURCE_DIR}/fixtures/native/recursion.c ${CMAKE_SOURCE_DIR}/fixtures/native/signals.c)
	add_custom_command(OUTPUT ${seed}
		COMMAND ${compiler} -w -g -O2 -shared -fPIC -nostdlib -Wl,-z,muldefs,-z,noseparate-code -o ${seed}.so ${units}
		COMMAND sh -c "{ printf '\\0'; cat ${seed}.so; } >${seed}"
		DEPENDS ${units} VERBATIM)
	list(APPEND SEEDS ${seed})
endforeach()
add_custom_target(fuzz_seeds ALL DEPENDS ${SEEDS})
list(JOIN SEEDS "," SEED_LIST)

file(GLOB FUZZERS CONFIGURE_DEPENDS fuzz/fuzz_*.c)
foreach(source ${FUZZERS})
	get_filename_component(name ${source} NAME_WE)
	add_executable(${name} ${source})
	target_compile_definitions(${name} PRIVATE YRT_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
	target_link_options(${name} PRIVATE -fsanitize=fuzzer)
	target_link_libraries(${name} yrt_ylang yrt_report yrt_format yrt_core)
	set(seeds)
	if(name IN_LIST WHOLE_FILE_FUZZERS)
		set(seeds -seed_inputs=${SEED_LIST})
	endif()
	add_test(NAME fuzz.${name} COMMAND ${name} -seed=${YRT_FUZZ_SEED} -runs=${YRT_FUZZ_RUNS} -max_total_time=${YRT_FUZZ_SECONDS}
		-max_len=65536 -rss_limit_mb=4096 -timeout=300 -artifact_prefix=${CMAKE_BINARY_DIR}/fuzz/ ${seeds})
	set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT ${FUZZ_TIMEOUT})
endforeach()
