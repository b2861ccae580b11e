# SPDX-License-Identifier: Apache-2.0
# The analysers of library/*.y and the runtime of exported scripts as texts in one C file, ${YLANG_TEXTS}. Included by
# CMakeLists.txt, and run with -P by the build (OUT and SOURCE_DIR are set).
if(CMAKE_SCRIPT_MODE_FILE)
	function(text_of file result)
		file(READ ${file} text)
		string(REPLACE "\\" "\\\\" text "${text}")
		string(REPLACE "\"" "\\\"" text "${text}")
		string(REPLACE "\n" "\\n\"\n\t\"" text "${text}")
		set(${result} "${text}" PARENT_SCOPE)
	endfunction()
	file(GLOB files ${SOURCE_DIR}/library/*.y)
	set(table "")
	foreach(file ${files})
		get_filename_component(name ${file} NAME_WE)
		text_of(${file} text)
		string(APPEND table "\t{\"${name}\",\n\t\"${text}\"},\n")
	endforeach()
	text_of(${SOURCE_DIR}/frontends/ylang/emit/runtime.py runtime)
	file(WRITE ${OUT} "/* generated: texts of the Y language */\n#include \"frontends/ylang/library.h\"\n\n"
		"const struct y_library_entry y_library[] = {\n${table}\t{0, 0},\n};\n"
		"const char y_runtime_text[] =\n\t\"${runtime}\";\n")
	return()
endif()

file(GLOB YLANG_LIBRARY CONFIGURE_DEPENDS library/*.y)
set(YLANG_TEXTS ${CMAKE_BINARY_DIR}/ylang_texts.c)
add_custom_command(OUTPUT ${YLANG_TEXTS}
	COMMAND ${CMAKE_COMMAND} -DOUT=${YLANG_TEXTS} -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -P ${CMAKE_SOURCE_DIR}/cmake/ylang.cmake
	DEPENDS ${YLANG_LIBRARY} ${CMAKE_SOURCE_DIR}/frontends/ylang/emit/runtime.py ${CMAKE_SOURCE_DIR}/cmake/ylang.cmake VERBATIM)
file(GLOB YLANG_SOURCES CONFIGURE_DEPENDS frontends/ylang/*.c frontends/ylang/*/*.c)
