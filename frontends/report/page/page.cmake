# SPDX-License-Identifier: Apache-2.0
# include() this behind add_library(yrt_report): puts the page of reports into it, by the embed.cmake of flame graphs.
set(report_page_folder ${CMAKE_CURRENT_LIST_DIR})
include(${report_page_folder}/files.cmake)
set(report_page ${CMAKE_BINARY_DIR}/report_page.c)
set(report_page_files files.cmake ${PAGE_html} ${PAGE_css} ${PAGE_js})
list(TRANSFORM report_page_files PREPEND ${report_page_folder}/)
set(report_embed ${CMAKE_SOURCE_DIR}/frontends/format/page/embed.cmake)
add_custom_command(OUTPUT ${report_page}
	COMMAND ${CMAKE_COMMAND} -DOUT=${report_page} -DFOLDER=${report_page_folder} -DNAME=report_page -P ${report_embed}
	DEPENDS ${report_page_files} ${report_embed} VERBATIM)
target_sources(yrt_report PRIVATE ${report_page})
