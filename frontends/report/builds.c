/* SPDX-License-Identifier: Apache-2.0 */
#include "builds.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "unwind/cleanup.h"

#define UNITS_MAX 256 /* that are looked at */

/* gcc's producer has its options: "GNU C17 12.2.0 -mtune=generic -march=x86-64 -g -O2". Others' have none. */
static bool is_known(const char *producer)
{
	return !strncmp(producer, "GNU C", 5) && strstr(producer, " -m");
}

static bool is_optimised(const char *producer)
{
	const char *option = strstr(producer, " -O");

	return option && option[3] != '0';
}

static void count(Dwarf *dwarf, struct facts *ret)
{
	Dwarf_Off at = 0, next;
	size_t header;
	u32 known = 0, plain = 0;

	for (u32 i = 0; i < UNITS_MAX && !dwarf_nextcu(dwarf, at, &next, &header, NULL, NULL, NULL); i++, at = next) {
		Dwarf_Attribute attribute;
		Dwarf_Die die;
		const char *producer = NULL;

		if (dwarf_offdie(dwarf, at + header, &die) && dwarf_attr(&die, DW_AT_producer, &attribute))
			producer = dwarf_formstring(&attribute);
		if (!producer || !is_known(producer))
			continue;
		known++;
		plain += !is_optimised(producer);
	}
	if (known)
		facts_set(ret, "build.unoptimised", (double)plain / known);
}

void builds_facts(pid_t pid, struct facts *ret)
{
	char path[64], target[4096];
	ssize_t n;
	int fd;
	Dwarf *dwarf;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, target, sizeof(target) - 1);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	dwarf = fd >= 0 ? dwarf_begin(fd, DWARF_C_READ) : NULL;
	if (n > 0) {
		target[n] = '\0';
		facts_set_text(ret, "build.file", target);
	}
	if (dwarf)
		count(dwarf, ret);
	dwarf_end(dwarf);
	if (fd >= 0)
		close(fd);
}
