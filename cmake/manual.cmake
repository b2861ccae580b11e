# SPDX-License-Identifier: Apache-2.0
# Man pages and completions, by `yrt help` from the tables beside the commands. include() this behind add_executable(yrt); the
# script part below is `cmake -DYRT=... -DOUT=... -P manual.cmake`.
if(CMAKE_SCRIPT_MODE_FILE)
	function(write_help file)
		execute_process(COMMAND ${YRT} help ${ARGN} OUTPUT_FILE ${OUT}/${file} COMMAND_ERROR_IS_FATAL ANY)
	endfunction()
	file(REMOVE_RECURSE ${OUT})
	file(MAKE_DIRECTORY ${OUT}/man1 ${OUT}/bash ${OUT}/zsh ${OUT}/fish)
	execute_process(COMMAND ${YRT} help --list OUTPUT_VARIABLE commands COMMAND_ERROR_IS_FATAL ANY)
	string(REGEX MATCHALL "[^\n]+" commands "${commands}")
	write_help(man1/yrt.1 --man)
	foreach(command ${commands})
		write_help(man1/yrt-${command}.1 --man ${command})
	endforeach()
	write_help(bash/yrt --completion bash)
	write_help(zsh/_yrt --completion zsh)
	write_help(fish/yrt.fish --completion fish)
	return()
endif()

set(manual ${CMAKE_BINARY_DIR}/manual)
set_source_files_properties(frontends/cli/help.c PROPERTIES COMPILE_DEFINITIONS YRT_DATE="2026-11-21")
add_custom_command(OUTPUT ${manual}.stamp
	COMMAND ${CMAKE_COMMAND} -DYRT=$<TARGET_FILE:yrt> -DOUT=${manual} -P ${CMAKE_CURRENT_LIST_FILE}
	COMMAND ${CMAKE_COMMAND} -E touch ${manual}.stamp
	DEPENDS yrt ${CMAKE_CURRENT_LIST_FILE} VERBATIM)
add_custom_target(manual ALL DEPENDS ${manual}.stamp)
install(FILES ${manual}/bash/yrt DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${manual}/zsh/_yrt DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${manual}/zsh/_yrt DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions) # where Debian's zsh looks below /usr
install(FILES ${manual}/fish/yrt.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
