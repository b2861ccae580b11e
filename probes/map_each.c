/* SPDX-License-Identifier: Apache-2.0 */
#include "map_each.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#include "unwind/cleanup.h"

#define AT_ONCE 1024

struct error *map_each(const struct bpf_map *map, bool remove, map_take *take, void *ctx, const char *what)
{
	size_t key = bpf_map__key_size(map), value = bpf_map__value_size(map);
	cleanup(free) char *keys = calloc(AT_ONCE, key);
	cleanup(free) char *values = calloc(AT_ONCE, value);
	LIBBPF_OPTS(bpf_map_batch_opts, options);
	int fd = bpf_map__fd(map), code = 0;
	struct error *err = keys && values ? NULL : &error_no_memory;
	void *from = NULL;
	u32 position, n;

	while (!err && !code) {
		n = AT_ONCE;
		code = remove ? bpf_map_lookup_and_delete_batch(fd, from, &position, keys, values, &n, &options)
		              : bpf_map_lookup_batch(fd, from, &position, keys, values, &n, &options);
		if (code && code != -ENOENT) /* ENOENT: these are the last */
			return error_errno(-code, "cannot read %s", what);
		for (u32 i = 0; !err && i < n; i++)
			err = take(ctx, keys + i * key, values + i * value);
		from = &position;
	}
	return err;
}
