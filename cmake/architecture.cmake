# SPDX-License-Identifier: Apache-2.0
# Architectures are chosen by include path: unwind/arch/<name>/.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
	set(YRT_ARCH x86_64)
	set(BPF_ARCH x86)
else()
	message(FATAL_ERROR "yrt knows x86_64 only so far, not ${CMAKE_SYSTEM_PROCESSOR}")
endif()
