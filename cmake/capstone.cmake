# SPDX-License-Identifier: Apache-2.0
# Links capstone's archive into yrt, with x86 alone: libcapstone.so has eleven more architectures, 4 MB of the
# container image. The table in its cs.c that names them has null for what a build leaves out (CAPSTONE_HAS_ARM and so
# on), which is what the definitions below put there. Without an archive yrt uses the shared library.
find_library(CAPSTONE_ARCHIVE libcapstone.a)
if(CAPSTONE_ARCHIVE)
	foreach(other AArch64 ARM EVM M680X M68K Mips PPC Sparc SystemZ TMS320C64x XCore)
		target_link_options(yrt PRIVATE
			LINKER:--defsym=${other}_global_init=0 LINKER:--defsym=${other}_option=0)
	endforeach()
	target_link_options(yrt PRIVATE LINKER:--as-needed)
	target_link_libraries(yrt yrt_core ${CAPSTONE_ARCHIVE})
endif()
