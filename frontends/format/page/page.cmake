# SPDX-License-Identifier: Apache-2.0
# include() this behind add_library(yrt_format): puts the page into it.
include(${CMAKE_CURRENT_LIST_DIR}/files.cmake)
set(page_source ${CMAKE_BINARY_DIR}/page.c)
set(page_files embed.cmake files.cmake ${PAGE_html} ${PAGE_css} ${PAGE_js})
list(TRANSFORM page_files PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
add_custom_command(OUTPUT ${page_source}
	COMMAND ${CMAKE_COMMAND} -DOUT=${page_source} -P ${CMAKE_CURRENT_LIST_DIR}/embed.cmake
	DEPENDS ${page_files} VERBATIM)
target_sources(yrt_format PRIVATE ${page_source})
