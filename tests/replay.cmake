# SPDX-License-Identifier: Apache-2.0
# Recorded walks (replay/README.md): writing replay/NAME.walks registers it.
add_executable(test_replay replay/test_replay.c replay/walks.c)
target_link_libraries(test_replay yrt_core PkgConfig::CMOCKA)
add_executable(yrt-record-walks replay/record_walks.c replay/walks.c unit/steps_program.c)
target_link_libraries(yrt-record-walks yrt_core PkgConfig::CMOCKA)
set_target_properties(yrt-record-walks PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
file(GLOB RECORDINGS CONFIGURE_DEPENDS replay/*.walks)
foreach(recording ${RECORDINGS})
	get_filename_component(name ${recording} NAME_WLE)
	add_test(NAME replay.${name} COMMAND test_replay ${recording})
	set_tests_properties(replay.${name} PROPERTIES LABELS replay ENVIRONMENT "${TEST_ENVIRONMENT}" TIMEOUT 1200)
endforeach()
