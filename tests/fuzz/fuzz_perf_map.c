/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile perf-PID.map, as one that belongs to this process: once whole, once in two parts. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unwind/symbols/perf_map.h"

static char path[64];

static void append(const uint8_t *data, size_t size, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | flags, 0600);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

static void remove_file(void)
{
	unlink(path);
}

static void ask(struct perf_map *m)
{
	static const u64 addrs[] = {0, 1, 0x10, 0xff, 0x1000, 0xabc, UINT64_MAX};

	for (size_t i = 0; i < sizeof(addrs) / sizeof(*addrs); i++) {
		const char *name = perf_map_find(m, addrs[i]);

		if (name && (!*name || strlen(name) > 1024))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t half = size ? data[0] * size / 256 : 0;
	struct perf_map *m;

	if (!path[0]) {
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
		atexit(remove_file);
	}
	append(data, half, O_TRUNC);
	if (perf_map_create(getpid(), &m))
		abort();
	ask(m);
	append(data + half, size - half, O_APPEND);
	perf_map_look(m);
	ask(m);
	perf_map_destroy(m);
	return 0;
}
