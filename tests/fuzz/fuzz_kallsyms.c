/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwind/symbols/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct kallsyms *k;
	const char *name;
	char path[64];
	u64 addr = 0;
	size_t i;

	if (fd < 0)
		fd = memfd_create("kallsyms", 0);
	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (kallsyms_load(path, &k))
		abort();
	for (i = 0; i < size; i++) { /* every 8 bytes, as text and as they are, are an address */
		addr = addr << 8 | data[i];
		name = kallsyms_find(k, addr);
		if (name && strlen(name) > size)
			abort();
		if (i + 16 <= size) {
			char hex[17] = {0};

			memcpy(hex, data + i, 16);
			name = kallsyms_find(k, strtoull(hex, NULL, 16));
			if (name && strlen(name) > size)
				abort();
		}
	}
	kallsyms_destroy(k);
	return 0;
}
