# SPDX-License-Identifier: Apache-2.0
# Other builds of PUC-Lua (versions/luas.txt): ctest -C Luas -L Luas
set(VERSIONS ${CMAKE_CURRENT_SOURCE_DIR}/versions)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${VERSIONS}/luas.txt)
file(STRINGS ${VERSIONS}/luas.txt LUA_LINES REGEX "^[0-9]")
foreach(line ${LUA_LINES})
	string(REGEX MATCH "^[^ ]+" lua "${line}")
	add_test(NAME luas.${lua} COMMAND Python3::Interpreter ${VERSIONS}/lua_version.py ${lua} ${Python3_EXECUTABLE}
		${CMAKE_CURRENT_SOURCE_DIR}/e2e/test_lua_puc.py CONFIGURATIONS Luas)
	set(names luas.${lua})
	if(NOT lua MATCHES "^5.5")
		list(APPEND names luas.${lua}.functions)
		add_test(NAME luas.${lua}.functions COMMAND Python3::Interpreter ${VERSIONS}/lua_version.py ${lua}
			${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/e2e/test_functions_lua.py test_puc test_puc_latency
			CONFIGURATIONS Luas)
	endif()
	set_tests_properties(${names} PROPERTIES LABELS Luas ENVIRONMENT "${TEST_ENVIRONMENT}"
		TIMEOUT 900 SKIP_RETURN_CODE 77 RUN_SERIAL ON) # it downloads its build, or its source
endforeach()
