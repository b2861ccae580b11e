# SPDX-License-Identifier: Apache-2.0
# Names of system calls by number, from the kernel's header of the machine that builds: what a sleeping thread is in.
if(YRT_ARCH STREQUAL "x86_64")
	set(SYSCALLS_HEADER asm/unistd_64.h)
endif()
find_file(SYSCALLS_FILE ${SYSCALLS_HEADER} PATHS /usr/include/${CMAKE_C_LIBRARY_ARCHITECTURE} /usr/include REQUIRED)
file(STRINGS ${SYSCALLS_FILE} SYSCALLS_LINES REGEX "^#define __NR_[a-z0-9_]+ [0-9]+$")
set(SYSCALLS_TEXT "/* generated: names of system calls */\n")
foreach(line ${SYSCALLS_LINES})
	string(REGEX REPLACE "^#define __NR_([a-z0-9_]+) ([0-9]+)$" "[\\2] = \"\\1\",\n" line "${line}")
	string(APPEND SYSCALLS_TEXT "${line}")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/syscall_names.h CONTENT "${SYSCALLS_TEXT}")
