/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dicts, instances, ints and names of threads of a Python whose memory is any bytes (any_bytes.h). The first
 * byte chooses the version, the second where a read fails.
 */
#include <string.h>

#include "any_bytes.h"
#include "runtimes/python/python_names.h"
#include "runtimes/python/python_thread_names.h"

static struct python_layout layout(bool free_threaded)
{
	u16 more = free_threaded ? 16 : 0;

	return (struct python_layout){.runtime_interpreters = {40, 8},
	        .interp_modules = {24, 8},
	        .interp_next = {0, 8},
	        .ob_type = {(u16)(8 + more), 8},
	        .ob_size = {(u16)(16 + more), 8},
	        .str_length = {(u16)(16 + more), 8},
	        .str_state = {(u16)(32 + more), 4},
	        .str_ascii = {(u16)(48 + more), 48},
	        .str_compact = {(u16)(72 + more), 72}};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const u32 versions[] = {0x03060000, 0x03090000, 0x030b0000, 0x030c0000, 0x030d0000, 0x030e0000};
	struct bytes b = {.memory.read = read_bytes, .data = data, .size = size};
	struct python_thread_names names = {0};
	struct python_layout l;
	u32 left = 2000;
	struct python_reader r = {.mem = &b.memory, .l = &l, .left = &left};
	char name[64];
	u64 number;

	if (size < 16)
		return 0;
	l = layout(data[0] & 0x80);
	r.version = versions[data[0] % 6];
	b.fail = data[1];
	for (u32 i = 0; i < 3; i++) {
		memset(name, 'x', sizeof(name));
		if (python_thread_name(&names, &r, 0, i, i == 1, name, 1 + data[2] % sizeof(name)) &&
		        strlen(name) > data[2] % sizeof(name))
			__builtin_trap();
	}
	python_int(&r, data[3] * 8ull, &number);
	python_str(&b.memory, &l, data[4] * 8ull, name, sizeof(name));
	python_attribute(&r, data[5] * 8ull, "_name");
	python_dict_find(&r, data[6] * 8ull, "");
	python_thread_names_free(&names);
	return 0;
}
