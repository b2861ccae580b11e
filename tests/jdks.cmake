# SPDX-License-Identifier: Apache-2.0
# Other JDKs (versions/jdks.txt), unpacked from Debian's suites into the build directory: ctest -C Versions -L Jdks
set(JDKS ${CMAKE_CURRENT_SOURCE_DIR}/versions)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${JDKS}/jdks.txt)
file(STRINGS ${JDKS}/jdks.txt JDK_LINES REGEX "^[0-9]")
set(JDK_MODES_few "tiered,interpreter,c1" "z,stripped")
set(JDK_MODES_all "tiered,interpreter,c1,c2,xcomp" "serial,parallel,g1,z,shenandoah,stripped"
	"uncompressed,noshare,compact,wide,huge,large,one_heap,debug_info,frame_pointer,no_inline")

set(JDK_COLLECTORS_few test_serial test_parallel test_g1)
set(JDK_COLLECTORS_all test_serial test_serial_busy test_parallel test_g1 test_z test_shenandoah)

function(add_jdk_command jdk name modes)
	add_test(NAME jdks.${jdk}.${name} COMMAND Python3::Interpreter ${JDKS}/jdk.py ${jdk} ${modes} ${ARGN}
		CONFIGURATIONS Versions)
	set_tests_properties(jdks.${jdk}.${name} PROPERTIES LABELS Jdks ENVIRONMENT "${TEST_ENVIRONMENT}" TIMEOUT 900
		SKIP_RETURN_CODE 77 RUN_SERIAL ON)
endfunction()

function(add_jdk_test jdk name modes script)
	add_jdk_command(${jdk} ${name} ${modes} ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${ARGN})
endfunction()

foreach(line ${JDK_LINES})
	separate_arguments(words UNIX_COMMAND "${line}")
	list(GET words 0 jdk)
	list(GET words 3 extent)
	set(number 0)
	foreach(modes ${JDK_MODES_${extent}})
		math(EXPR number "${number} + 1")
		add_jdk_test(${jdk} frames${number} ${modes} e2e/test_java_frames.py)
	endforeach()
	if(NOT jdk MATCHES "^8-") # one stack of 150,000 is cut
		add_jdk_command(${jdk} steps - $<TARGET_FILE:test_hotspot_steps>)
	endif()
	add_jdk_test(${jdk} split - e2e/test_java_split.py)
	add_jdk_test(${jdk} virtual - e2e/test_java_virtual.py)
	add_jdk_test(${jdk} preempted - e2e/test_java_preempted.py)
	add_jdk_test(${jdk} locks - e2e/test_dump_java.py test_java_locks)
	add_jdk_test(${jdk} lock_classes - e2e/test_lock.py test_java_classes test_java_parked)
	add_jdk_test(${jdk} calls - e2e/test_java_calls.py)
	add_jdk_test(${jdk} latency - e2e/test_java_latency.py)
	add_jdk_test(${jdk} heap - e2e/test_java_heap.py)
	add_jdk_test(${jdk} refs - e2e/test_java_refs.py)
	add_jdk_test(${jdk} alloc - e2e/test_java_alloc.py test_threads test_objects
		test_debug_registers_of_threads test_without_debug_registers)
	add_jdk_test(${jdk} alloc_stripped - e2e/test_java_alloc_stripped.py test_shares)
	add_jdk_test(${jdk} alloc_sites - e2e/test_java_alloc_sites.py ${JDK_COLLECTORS_${extent}})
endforeach()
