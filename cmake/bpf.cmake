# SPDX-License-Identifier: Apache-2.0
# BPF objects: clang compiles one translation unit with all walkers in it, bpftool makes a skeleton to embed.
find_program(CLANG NAMES clang clang-14 clang-15 clang-16 clang-17 clang-18 clang-19 REQUIRED)
find_program(BPFTOOL bpftool PATHS /usr/sbin /sbin REQUIRED)
find_program(LLVM_STRIP NAMES llvm-strip llvm-strip-14 llvm-strip-16 llvm-strip-19 REQUIRED)

# Every walker is found by its name; adding a runtime needs no line here.
file(GLOB WALKERS CONFIGURE_DEPENDS runtimes/*/*_walk.c runtimes/*/walk/*_walk.c)
set(WALKERS_H "/* generated: the walkers, compiled into the BPF object */\n")
foreach(walker ${WALKERS})
	string(APPEND WALKERS_H "#include \"${walker}\"\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/bpf/walkers.h CONTENT "${WALKERS_H}")

# So are the programs of every event.
file(GLOB EVENTS CONFIGURE_DEPENDS probes/*/*.bpf.h)
set(EVENTS_H "/* generated: the programs of each event */\n")
foreach(event ${EVENTS})
	string(APPEND EVENTS_H "#include \"${event}\"\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/bpf/events.h CONTENT "${EVENTS_H}")

function(add_bpf_skeleton name source)
	set(dir ${CMAKE_BINARY_DIR}/bpf)
	add_custom_command(
		OUTPUT ${dir}/${name}.skel.h
		COMMAND ${CLANG} -O2 -g -target bpf -mcpu=v3 -D__TARGET_ARCH_${BPF_ARCH} -Wall -Werror
			-I${CMAKE_SOURCE_DIR} -I${CMAKE_SOURCE_DIR}/probes -I${CMAKE_SOURCE_DIR}/unwind
			-I${CMAKE_SOURCE_DIR}/unwind/target/bpf -I${CMAKE_SOURCE_DIR}/unwind/arch/${YRT_ARCH} -I${dir}
			-idirafter /usr/include/${CMAKE_C_LIBRARY_ARCHITECTURE} -MD -MF ${dir}/${name}.d -MT ${dir}/${name}.skel.h
			-c ${CMAKE_SOURCE_DIR}/${source} -o ${dir}/${name}.bpf.o
		COMMAND ${LLVM_STRIP} -g ${dir}/${name}.bpf.o
		COMMAND ${BPFTOOL} gen skeleton ${dir}/${name}.bpf.o name ${name} > ${dir}/${name}.skel.h
		DEPENDS ${CMAKE_SOURCE_DIR}/${source} ${WALKERS} ${EVENTS}
		DEPFILE ${dir}/${name}.d
		VERBATIM)
	add_custom_target(${name}_skeleton DEPENDS ${dir}/${name}.skel.h)
endfunction()
