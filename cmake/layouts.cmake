# SPDX-License-Identifier: Apache-2.0
# The layout library: runtimes/<name>/layouts/*.layout as texts in one C file, ${LAYOUTS_SOURCE}. Included by
# CMakeLists.txt, and run with -P by the build (OUT and SOURCE_DIR are set).
if(CMAKE_SCRIPT_MODE_FILE)
	file(GLOB files ${SOURCE_DIR}/runtimes/*/layouts/*.layout)
	set(table "")
	foreach(file ${files})
		string(REGEX REPLACE ".*/runtimes/([^/]+)/layouts/([^/]+)$" "\\1;\\2" parts "${file}")
		list(GET parts 0 runtime)
		list(GET parts 1 name)
		file(READ ${file} text)
		string(REPLACE "\\" "\\\\" text "${text}")
		string(REPLACE "\"" "\\\"" text "${text}")
		string(REPLACE "\n" "\\n\"\n\t\"" text "${text}")
		string(APPEND table "\t{\"${runtime}\", \"${name}\",\n\t\"${text}\"},\n")
	endforeach()
	file(WRITE ${OUT} "/* generated: the layout library */\n#include \"layout/layout.h\"\n\n"
		"const struct layout_embedded layout_embedded[] = {\n${table}\t{NULL, NULL, NULL},\n};\n"
		"const u32 layout_embedded_count = sizeof(layout_embedded) / sizeof(*layout_embedded) - 1;\n")
	return()
endif()

file(GLOB LAYOUTS CONFIGURE_DEPENDS runtimes/*/layouts/*.layout)
set(LAYOUTS_SOURCE ${CMAKE_BINARY_DIR}/layouts.c)
add_custom_command(OUTPUT ${LAYOUTS_SOURCE}
	COMMAND ${CMAKE_COMMAND} -DOUT=${LAYOUTS_SOURCE} -DSOURCE_DIR=${CMAKE_SOURCE_DIR}
		-P ${CMAKE_SOURCE_DIR}/cmake/layouts.cmake
	DEPENDS ${LAYOUTS} ${CMAKE_SOURCE_DIR}/cmake/layouts.cmake VERBATIM)
