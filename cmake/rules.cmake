# SPDX-License-Identifier: Apache-2.0
# The rules of `yrt report`: frontends/report/rules/*.rule as texts in one C file, ${RULES_SOURCE}. Included by
# CMakeLists.txt, and run with -P by the build (OUT and SOURCE_DIR are set).
if(CMAKE_SCRIPT_MODE_FILE)
	file(GLOB files ${SOURCE_DIR}/frontends/report/rules/*.rule)
	set(table "")
	foreach(file ${files})
		get_filename_component(name ${file} NAME)
		file(READ ${file} hex HEX)
		string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${hex}")
		string(REGEX REPLACE "(\\\\x0a)" "\\1\"\n\t\"" bytes "${bytes}")
		string(APPEND table "\t{\"${name}\",\n\t\"${bytes}\"},\n")
	endforeach()
	file(WRITE ${OUT} "/* generated: the rules */\n#include \"frontends/report/rule.h\"\n\n"
		"const struct rules_embedded rules_embedded[] = {\n${table}\t{NULL, NULL},\n};\n")
	return()
endif()

file(GLOB RULES CONFIGURE_DEPENDS frontends/report/rules/*.rule)
set(RULES_SOURCE ${CMAKE_BINARY_DIR}/rules.c)
add_custom_command(OUTPUT ${RULES_SOURCE}
	COMMAND ${CMAKE_COMMAND} -DOUT=${RULES_SOURCE} -DSOURCE_DIR=${CMAKE_SOURCE_DIR}
		-P ${CMAKE_SOURCE_DIR}/cmake/rules.cmake
	DEPENDS ${RULES} ${CMAKE_SOURCE_DIR}/cmake/rules.cmake VERBATIM)
