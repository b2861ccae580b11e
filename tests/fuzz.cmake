# SPDX-License-Identifier: Apache-2.0
# Fuzz targets: the sources they need are compiled anew with clang's sanitizers. In the tests each runs for some seconds, always from
# one seed: what fails there can be had again. To look for what is new: -DYRT_FUZZ_SEED=0 -DYRT_FUZZ_SECONDS=120.
set(YRT_FUZZ_SECONDS 3 CACHE STRING "Seconds that each fuzzer runs in the tests")
set(YRT_FUZZ_SEED 1 CACHE STRING "Seed of the fuzzers; 0: another in each run")
math(EXPR FUZZ_TIMEOUT "${YRT_FUZZ_SECONDS} + 120")
set(FUZZ_FLAGS -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -g -O1)
file(GLOB FUZZERS CONFIGURE_DEPENDS fuzz/fuzz_*.c)
set(FUZZ_OBJECTS)
# Of the formats all but the page, which is generated.
set(FUZZ_SOURCES ${CORE_SOURCES} ${FORMAT_SOURCES})
list(FILTER FUZZ_SOURCES EXCLUDE REGEX "/format/(html|format)\\.c$")
foreach(source ${FUZZ_SOURCES})
	string(REPLACE "${CMAKE_SOURCE_DIR}/" "" relative ${source})
	string(REPLACE "/" "_" object ${relative})
	set(object ${CMAKE_BINARY_DIR}/fuzz/${object}.o)
	add_custom_command(OUTPUT ${object}
		COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/fuzz
		COMMAND ${CMAKE_C_COMPILER_LAUNCHER} ${CLANG} ${FUZZ_FLAGS} -std=gnu17 -D_GNU_SOURCE
			"-DYRT_VERSION=\"${PROJECT_VERSION}\""
			-I${CMAKE_SOURCE_DIR} -I${CMAKE_SOURCE_DIR}/unwind -I${CMAKE_SOURCE_DIR}/unwind/target/native -I${CMAKE_BINARY_DIR}/generated
			-I${CMAKE_SOURCE_DIR}/unwind/arch/${YRT_ARCH} -MD -MF ${object}.d -MT ${object} -c ${source} -o ${object}
		DEPENDS ${source} DEPFILE ${object}.d VERBATIM)
	list(APPEND FUZZ_OBJECTS ${object})
endforeach()
# An archive: a fuzzer is linked to the objects that it calls, and libFuzzer looks at no other counters behind each input.
set(FUZZ_ARCHIVE ${CMAKE_BINARY_DIR}/fuzz/libyrt.a)
add_custom_command(OUTPUT ${FUZZ_ARCHIVE}
	COMMAND ${CMAKE_COMMAND} -E rm -f ${FUZZ_ARCHIVE}
	COMMAND ${CMAKE_AR} rcsT ${FUZZ_ARCHIVE} ${FUZZ_OBJECTS}
	DEPENDS ${FUZZ_OBJECTS} VERBATIM)
# Seeds of those that read whole ELF files, which their first byte says: two units each, of two compilers.
set(WHOLE_FILE_FUZZERS fuzz_cfi fuzz_dwarf fuzz_symbols)
set(SEEDS)
foreach(compiler ${CLANG} ${CMAKE_C_COMPILER})
	get_filename_component(name ${compiler} NAME)
	set(seed ${CMAKE_BINARY_DIR}/fuzz/seed-${name})
	set(units ${CMAKE_SOURCE_DIR}/fixtures/native/recursion.c ${CMAKE_SOURCE_DIR}/fixtures/native/signals.c)
	add_custom_command(OUTPUT ${seed}
		COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/fuzz
		COMMAND ${compiler} -w -g -O2 -shared -fPIC -nostdlib -Wl,-z,muldefs,-z,noseparate-code -o ${seed}.so ${units}
		COMMAND sh -c "{ printf '\\0'; cat ${seed}.so; } >${seed}"
		DEPENDS ${units} VERBATIM)
	list(APPEND SEEDS ${seed})
endforeach()
add_custom_target(fuzz_seeds ALL DEPENDS ${SEEDS})
list(JOIN SEEDS "," SEED_LIST)

foreach(source ${FUZZERS})
	get_filename_component(name ${source} NAME_WE)
	set(binary ${CMAKE_BINARY_DIR}/fuzz/${name})
	add_custom_command(OUTPUT ${binary}
		COMMAND ${CLANG} -fsanitize=fuzzer,address,undefined -g -O1 -std=gnu17 -D_GNU_SOURCE
			"-DYRT_SOURCE_DIR=\"${CMAKE_SOURCE_DIR}\""
			-I${CMAKE_SOURCE_DIR} -I${CMAKE_SOURCE_DIR}/unwind -I${CMAKE_SOURCE_DIR}/unwind/target/native -I${CMAKE_BINARY_DIR}/generated
			-I${CMAKE_SOURCE_DIR}/unwind/arch/${YRT_ARCH} ${source} ${FUZZ_ARCHIVE} -o ${binary}
			-lelf -ldw -lcapstone -lxxhash -lz -llzma -lzstd -lisal -ljansson ${IBERTY_LIBRARY} -lm
		DEPENDS ${source} ${FUZZ_ARCHIVE} VERBATIM)
	add_custom_target(${name} ALL DEPENDS ${binary})
	set(seeds)
	if(name IN_LIST WHOLE_FILE_FUZZERS)
		set(seeds -seed_inputs=${SEED_LIST})
	endif()
	add_test(NAME fuzz.${name} COMMAND ${binary} -seed=${YRT_FUZZ_SEED} -max_total_time=${YRT_FUZZ_SECONDS} -max_len=65536 -rss_limit_mb=4096 -timeout=20
		-artifact_prefix=${CMAKE_BINARY_DIR}/fuzz/ ${seeds})
	set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT ${FUZZ_TIMEOUT})
endforeach()
