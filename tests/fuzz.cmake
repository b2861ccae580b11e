# SPDX-License-Identifier: Apache-2.0
# Fuzz targets: the sources they need are compiled anew with clang's sanitizers; each runs for some seconds in the tests.
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
		COMMAND ${CLANG} ${FUZZ_FLAGS} -std=gnu17 -D_GNU_SOURCE "-DYRT_SOURCE_DIR=\"${CMAKE_SOURCE_DIR}\""
			"-DYRT_VERSION=\"${PROJECT_VERSION}\""
			-I${CMAKE_SOURCE_DIR} -I${CMAKE_SOURCE_DIR}/unwind -I${CMAKE_SOURCE_DIR}/unwind/target/native
			-I${CMAKE_SOURCE_DIR}/unwind/arch/${YRT_ARCH} -MD -MF ${object}.d -MT ${object} -c ${source} -o ${object}
		DEPENDS ${source} DEPFILE ${object}.d VERBATIM)
	list(APPEND FUZZ_OBJECTS ${object})
endforeach()
foreach(source ${FUZZERS})
	get_filename_component(name ${source} NAME_WE)
	set(binary ${CMAKE_BINARY_DIR}/fuzz/${name})
	add_custom_command(OUTPUT ${binary}
		COMMAND ${CLANG} -fsanitize=fuzzer,address,undefined -g -O1 -std=gnu17 -D_GNU_SOURCE
			"-DYRT_SOURCE_DIR=\"${CMAKE_SOURCE_DIR}\""
			-I${CMAKE_SOURCE_DIR} -I${CMAKE_SOURCE_DIR}/unwind -I${CMAKE_SOURCE_DIR}/unwind/target/native
			-I${CMAKE_SOURCE_DIR}/unwind/arch/${YRT_ARCH} ${source} ${FUZZ_OBJECTS} -o ${binary}
			-lelf -ldw -lcapstone -lxxhash -lz -llzma -lzstd -lisal -ljansson ${IBERTY_LIBRARY} -lm
		DEPENDS ${source} ${FUZZ_OBJECTS} VERBATIM)
	add_custom_target(${name} ALL DEPENDS ${binary})
	add_test(NAME fuzz.${name} COMMAND ${binary} -max_total_time=5 -max_len=65536 -rss_limit_mb=4096
		-artifact_prefix=${CMAKE_BINARY_DIR}/fuzz/)
	set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 120)
endforeach()
