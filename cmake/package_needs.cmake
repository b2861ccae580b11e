# SPDX-License-Identifier: Apache-2.0
# What cpack needs for a package that is whole: without these it fails late, or leaves out the dependencies.
if(CPACK_GENERATOR STREQUAL "DEB")
	foreach(program file dpkg-shlibdeps)
		find_program(YRT_NEEDS_${program} ${program})
		if(NOT YRT_NEEDS_${program})
			message(FATAL_ERROR "${program} is missing: sh fixtures/setup.sh package installs it")
		endif()
	endforeach()
endif()
